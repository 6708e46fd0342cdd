"""A bar in terminals and notebooks, for what takes longer than a second."""
import sys
import time


class Bar:
    """Draws (done, total) on stderr, after a second, and wipes itself away."""

    def __init__(self, what: str, enabled: bool | None = None):
        self.what, self.start, self.shown = what, time.monotonic(), 0
        notebook = "ipykernel" in sys.modules
        self.enabled = (sys.stderr.isatty() or notebook) if enabled is None else enabled

    def __call__(self, done: int, total: int) -> None:
        seconds = time.monotonic() - self.start
        if not self.enabled or seconds < 1:
            return
        left = seconds * (total - done) / done if 0 < done <= total else None
        of = f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""
        text = f"{self.what} {of} {seconds:.0f} s" + ("" if left is None else f", about {left:.0f} s left")
        sys.stderr.write("\r" + text.ljust(self.shown))
        sys.stderr.flush()
        self.shown = len(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.shown:
            sys.stderr.write("\r" + " " * self.shown + "\r")
            sys.stderr.flush()
