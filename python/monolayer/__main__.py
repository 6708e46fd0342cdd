"""`python -m monolayer`: the command line."""
import signal
import sys

from . import _native


def main():
    # The program ends at once on Ctrl-C, or listens to it itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.main(["monolayer", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
