# SPDX-License-Identifier: Apache-2.0
"""Sparse Gauss-Newton: positions of a robot from odometry and loop closures (a pose graph in the plane).

The Jacobian's pattern is analyzed once; every step factors new values in the same memory.
"""
import numpy as np
import scipy.sparse

import qrane.sparse

rng = np.random.default_rng(0)
count = 400
angle = np.linspace(0, 8 * np.pi, count)
truth = np.stack([10 * np.cos(angle), 10 * np.sin(angle), angle + np.pi / 2], axis=1)
per_round = count // 4
edges = np.array([(i, i + 1) for i in range(count - 1)] + [(i, i + per_round) for i in range(0, count - per_round, 5)])


def relative(poses):
    """The second pose of each edge as seen from the first."""
    first, second = poses[edges[:, 0]], poses[edges[:, 1]]
    c, s = np.cos(first[:, 2]), np.sin(first[:, 2])
    dx, dy = (second - first)[:, :2].T
    return np.stack([c * dx + s * dy, -s * dx + c * dy, second[:, 2] - first[:, 2]], axis=1)


def jacobian(poses):
    """Three rows for each edge, six entries in each; and three rows that hold the first pose."""
    first, second = poses[edges[:, 0]], poses[edges[:, 1]]
    c, s = np.cos(first[:, 2]), np.sin(first[:, 2])
    dx, dy = (second - first)[:, :2].T
    one, zero = np.ones_like(c), np.zeros_like(c)
    blocks = np.array([[-c, -s, -s * dx + c * dy, c, s, zero], [s, -c, -c * dx - s * dy, -s, c, zero],
                       [zero, zero, -one, zero, zero, one]]).transpose(2, 0, 1)
    columns = np.concatenate([3 * edges[:, :1] + np.arange(3), 3 * edges[:, 1:] + np.arange(3)], axis=1)
    columns = np.concatenate([np.repeat(columns[:, None], 3, axis=1).ravel(), np.arange(3)])
    values = np.concatenate([blocks.ravel(), np.ones(3)])
    pointers = np.concatenate([6 * np.arange(3 * len(edges) + 1), 18 * len(edges) + 1 + np.arange(3)])
    return scipy.sparse.csr_array((values, columns, pointers), shape=(3 * len(edges) + 3, 3 * count))


measured = relative(truth) + rng.standard_normal((len(edges), 3)) * [0.02, 0.02, 0.002]
poses = truth + np.cumsum(rng.standard_normal((count, 3)) * [0.02, 0.02, 0.002], axis=0)
poses[0] = truth[0]
factor = None
for step in range(10):
    residual = np.concatenate([(measured - relative(poses)).ravel(), truth[0] - poses[0]])
    J = jacobian(poses)
    if factor is None:
        factor = qrane.sparse.qr(J)
    else:
        factor.refactor(J)
    change = factor.solve(residual)
    poses = poses + change.reshape(count, 3)
    print(f"step {step}: cost {residual @ residual:.6f}, change {np.linalg.norm(change):.2e}")
    if np.linalg.norm(change) < 1e-9:
        break
assert step < 9 and np.abs(poses - truth)[:, :2].max() < 2
