# SPDX-License-Identifier: Apache-2.0
"""Times qrane on the CPU against SciPy and Dask, interleaved: medians of runs that take turns.

    python python/benchmarks/cpu.py [dense] [update] [sparse] [dask]
"""
import statistics
import sys
import time

import numpy as np

import qrane


def race(name, runs, **contenders):
    """Medians of the contenders' times in turns, and how much faster the first is than the second."""
    times = {key: [] for key in contenders}
    for run in range(runs + 1):
        for key, call in contenders.items():
            started = time.perf_counter()
            call()
            if run > 0:  # the first warms up
                times[key].append(time.perf_counter() - started)
    median = {key: statistics.median(values) for key, values in times.items()}
    ours, theirs = median.values()
    line = "  ".join(f"{key} {1e3 * value:9.2f} ms" for key, value in median.items())
    print(f"{name:45s} {line}  ratio {theirs / ours:6.2f}", flush=True)


def dense(rng):
    import scipy.linalg
    for m, n in ((10_000, 10), (20_000, 50), (5_000, 200), (100_000, 32), (4_000, 500), (110_592, 100)):
        a, b = rng.standard_normal((m, n)), rng.standard_normal(m)
        for order in "CF":
            x = np.asarray(a, order=order)
            race(f"qr r {m} x {n} {order}", 5, qrane=lambda: qrane.qr(x, "r"),
                 scipy=lambda: scipy.linalg.qr(x, mode="r"))
        race(f"qr economic {m} x {n}", 5, qrane=lambda: qrane.qr(a), scipy=lambda: scipy.linalg.qr(a, mode="economic"))
        race(f"lstsq {m} x {n}", 5, qrane=lambda: qrane.lstsq(a, b),
             scipy=lambda: scipy.linalg.lstsq(a, b, lapack_driver="gelsy"))
        race(f"svd {m} x {n}", 3, qrane=lambda: qrane.svd(a, False), scipy=lambda: scipy.linalg.svd(a, False))


def update(rng):
    import scipy.linalg
    a = rng.standard_normal((4000, 500))
    q, r = scipy.linalg.qr(a, mode="economic")
    for p in (32, 128):
        u, v = rng.standard_normal((p, 500)), rng.standard_normal((4000, p))
        w = rng.standard_normal((500, p))
        race(f"qr_insert {p} rows", 3, qrane=lambda: qrane.qr_insert(q, r, u, 5),
             scipy=lambda: scipy.linalg.qr_insert(q, r, u, 5))
        race(f"qr_delete {p} rows", 3, qrane=lambda: qrane.qr_delete(q, r, 5, p),
             scipy=lambda: scipy.linalg.qr_delete(q, r, 5, p))
        race(f"qr_insert {p} columns", 3, qrane=lambda: qrane.qr_insert(q, r, v, 5, "col"),
             scipy=lambda: scipy.linalg.qr_insert(q, r, v, 5, "col"))
        race(f"qr_update rank {p}", 3, qrane=lambda: qrane.qr_update(q, r, v, w),
             scipy=lambda: scipy.linalg.qr_update(q, r, v, w))


def sparse(rng):
    import scipy.sparse
    import scipy.sparse.linalg
    side = 120
    points = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate([np.stack([points[:, :-1].ravel(), points[:, 1:].ravel()], 1),
                            np.stack([points[:-1].ravel(), points[1:].ravel()], 1)])
    count = len(pairs)
    values = np.repeat([[-1.0, 1.0]], count, axis=0).ravel()
    lines = scipy.sparse.csr_array((values, pairs.ravel(), 2 * np.arange(count + 1)), shape=(count, side * side))
    a = scipy.sparse.vstack([lines, 1e-3 * scipy.sparse.eye_array(side * side)]).tocsr()
    b = rng.standard_normal(a.shape[0])
    race(f"sparse lstsq {a.shape[0]} x {a.shape[1]} (grid)", 1, qrane=lambda: qrane.sparse.lstsq(a, b),
         lsqr=lambda: scipy.sparse.linalg.lsqr(a, b, atol=1e-13, btol=1e-13, iter_lim=100_000))


def dask(rng):
    import dask.array as da
    import distributed

    import qrane.dask
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as local:
        with distributed.Client(local):
            a = da.random.default_rng(0).standard_normal((2_000_000, 32), chunks=(131_072, 32)).persist()
            distributed.wait(a)
            race("dask R of 2000000 x 32", 3, qrane=lambda: qrane.dask.tsqr(a, mode="r").compute(),
                 dask=lambda: da.linalg.tsqr(a)[1].compute())


if __name__ == "__main__":
    for name in sys.argv[1:] or ("dense", "update", "sparse", "dask"):
        globals()[name](np.random.default_rng(0))
