"""The interpreter lives on: faults, Ctrl-C, threads; and what importing and converting costs."""
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import monolayer

SLOW = "monolayer.memorize(monolayer.read('task:reverse:alphabet=4,length=1..6'), candidates=1_000_000)"


def test_a_fault_is_an_exception():
    """In a process of its own, which prints the fault as Rust does, and lives on."""
    program = (
        "import monolayer\n"
        "for _ in range(3):\n"
        "    try:\n        monolayer._native._fault()\n"
        "    except RuntimeError as error:\n        print(error)\n"
        "print(monolayer.memorize([['a']], [['X']]).predict(['a']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["a fault of monolayer itself, please report it: on purpose"] * 3 + ["['X']"]


INTERRUPTED = {
    "searching": SLOW,
    "a slow function": "monolayer.approximate(lambda x: time.sleep(0.05) or x, 1, 2, grid=64, lipschitz=1.0)",
    "predicting": "[monolayer.memorize([['a', 'b']], [['X', 'Y']]).predict([['a', 'b']] * 100_000) for _ in range(1000)]",
    "another program": "monolayer.command('claims')",
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_interrupted_within_a_second(name):
    program = (
        "import monolayer, time\nprint('ready', flush=True)\n"
        f"try:\n    {INTERRUPTED[name]}\n    print('done')\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
        "print(monolayer.memorize([['a']], [['X']]).predict(['a']), flush=True)\n"
    )
    # A shell that starts the tests in the background lets them ignore interrupts, which programs inherit.
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "-c", program], preexec_fn=heard, **pipes)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    took = time.monotonic() - start
    printed, errors = child.communicate(timeout=60)
    assert printed == "['X']\n" and "panicked" not in errors
    assert took < 1


def test_an_exception_of_the_bar_is_heard():
    class Heard(Exception):
        pass

    def bar(done, total):
        raise Heard

    data = monolayer.read("task:reverse:alphabet=4,length=1..6")
    with pytest.raises(Heard):
        monolayer._native.memorize(data._native, bar, candidates=1_000_000)


def test_other_threads_run_meanwhile():
    """The interpreter's lock is released: this thread is seldom kept waiting while another one searches."""
    data = monolayer.read("task:reverse:alphabet=3,length=1..5")
    result = []
    worker = threading.Thread(target=lambda: result.append(monolayer.memorize(data, candidates=300)))
    worker.start()
    longest = turns = 0
    while worker.is_alive():
        before = time.monotonic()
        time.sleep(0.001)
        longest, turns = max(longest, time.monotonic() - before), turns + 1
    worker.join()
    assert result[0].certified == result[0].possible and turns > 10
    assert longest < 1


def test_models_in_many_threads():
    model = monolayer.memorize([["a", "b"], ["b", "b"]], [["X", "Y"], ["Z", "Z"]])
    found = []
    workers = [threading.Thread(target=lambda: found.append(model.predict([["a", "b"]] * 200))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [[["X", "Y"]] * 200] * 8


def test_outputs_are_not_copied():
    """What a model gives is NumPy's own memory: its parts are views of one array."""
    tokens = np.random.default_rng(0).random((4, 3, 2))
    parts = monolayer.memorize(tokens, tokens[:, ::-1].copy()).predict(tokens)
    assert all(part.base is not None for part in parts)


def cpu(program):
    """Processor seconds of a program, the least of three."""
    least = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


def test_importing_is_fast_and_needs_numpy_alone():
    assert cpu("import monolayer") - cpu("pass") < 0.3
    program = (
        "import sys, monolayer; standard = sys.stdlib_module_names\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} - standard - {'monolayer', 'numpy', '__main__'}))"
    )
    others = subprocess.check_output([sys.executable, "-S", "-c", f"import sys; sys.path = {sys.path!r}\n{program}"], text=True)
    assert [m for m in eval(others) if not m.startswith("_")] == []


def test_converting_200000_tokens():
    rows = [[f"w{(7919 * i + j) % 20_000}" for j in range(20)] for i in range(10_000)]
    labels = [["ABCDE"[(i * j) % 5] for j in range(20)] for i in range(10_000)]
    ids = np.arange(200_000).reshape(10_000, 20) % 20_000
    for sequences, classes in ((rows, labels), (ids, ids % 5), (ids.tolist(), (ids % 5).tolist())):
        start = time.process_time()
        data = monolayer.Dataset(sequences, classes)
        assert time.process_time() - start < 0.5 and data.tokens == 200_000
