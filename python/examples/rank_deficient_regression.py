# SPDX-License-Identifier: Apache-2.0
"""A regression whose columns are dependent, and which says so: a dummy for every category, and a constant."""
import numpy as np

import qrane

rng = np.random.default_rng(0)
category = rng.integers(0, 4, 500)
A = np.column_stack([np.ones(500), category[:, None] == np.arange(4), rng.standard_normal(500)])
b = np.array([1.0, 2.0, 3.0, 4.0])[category] + 0.5 * A[:, -1] + 0.01 * rng.standard_normal(500)

x, _, rank, _ = qrane.lstsq(A, b)
print(f"rank {rank} of {A.shape[1]}")
F = qrane.factor(A)
direction = F.null_space_basis()[:, 0]
print("undetermined: the combination", (direction / direction[0]).round(3) + 0.0)
print("of least norm:", x.round(3))
basic = qrane.lstsq(A, b, least_norm=False).x
print("with fewest columns:", basic.round(3))
assert rank == 5 and np.count_nonzero(basic) == 5 and np.allclose(A @ x, A @ basic)
try:
    qrane.lstsq(A, b, deficient="raise")
except np.linalg.LinAlgError as error:
    print("or refused:", error)
