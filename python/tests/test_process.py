# SPDX-License-Identifier: Apache-2.0
"""Threads, signals, forks, import time: what the module does to the process it is in."""
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import qrane


def test_gil_is_released(rng):
    a = rng.standard_normal((4000, 1500))
    counted, running = 0, threading.Event()

    def work():
        running.set()
        qrane.svd(a, full_matrices=False)

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    while thread.is_alive():
        counted += 1
        time.sleep(0.001)
    assert counted > 20


def test_threads_share_nothing(rng):
    matrices = [rng.standard_normal((500, 20 + i)) for i in range(8)]
    results = [None] * 8

    def work(i):
        for _ in range(5):
            results[i] = qrane.qr(matrices[i], "r")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for a, r in zip(matrices, results):
        assert np.array_equal(qrane.qr(a, "r"), r)


def test_one_factor_in_two_threads(rng):
    a, b = rng.standard_normal((300, 40)), rng.standard_normal((300, 5))
    f = qrane.factor(a)
    expected = f.solve(b)
    results = []
    threads = [threading.Thread(target=lambda: results.append(f.solve(b))) for _ in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(results) == 6 and all(np.array_equal(x, expected) for x in results)


def test_control_c_stops_a_long_call(rng):
    a = rng.standard_normal((3000, 3000))
    pid = os.getpid()
    timer = threading.Timer(0.3, lambda: os.kill(pid, signal.SIGINT))
    timer.start()
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        while True:
            qrane.qr(a, "complete")
    assert time.perf_counter() - started < 5
    assert np.allclose(np.abs(qrane.qr(np.eye(3), "r")), np.eye(3))  # still usable


def test_fork(rng):
    a = rng.standard_normal((2000, 50))
    r = qrane.qr(a, "r")
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(qrane.qr(a, "r"), r) else 1)
    deadline = time.monotonic() + 30
    status = (0, 0)
    while status[0] == 0 and time.monotonic() < deadline:
        status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if status[0] == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert status == (child, 0)


def test_thread_counts_do_not_change_results(rng):
    a = rng.standard_normal((20000, 30))
    r = qrane.qr(a, "r")
    for threads in (1, 2, 3):
        with qrane.use(threads=threads):
            assert np.array_equal(qrane.qr(a, "r"), r)


def test_import_is_quick():
    code = "import time; t = time.perf_counter(); import qrane; print(time.perf_counter() - t)"
    times = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
             for _ in range(3)]
    assert min(times) < 0.15
