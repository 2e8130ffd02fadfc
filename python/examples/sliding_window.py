# SPDX-License-Identifier: Apache-2.0
"""A trend over the last 500 samples, brought up to date as samples come, without factoring again."""
import numpy as np

import qrane

rng = np.random.default_rng(0)
t = np.arange(3000.0)
signal = np.where(t < 1500, 0.01 * t, 15 - 0.02 * (t - 1500)) + 0.1 * rng.standard_normal(3000)
A = np.stack([np.ones_like(t), t / 1000], axis=1)
width, step = 500, 50

window = qrane.updatable(A[:width], b=signal[:width])
for start in range(step, len(t) - width + 1, step):
    end = start + width
    window.insert_rows(width, A[end - step:end], signal[end - step:end])
    window.delete_rows(0, step)
    slope = window.solve()[1] / 1000
    if start % 500 == 0:
        print(f"samples {start:4d} .. {end:4d}: slope {slope:+.4f}")
assert np.allclose(window.solve(), np.linalg.lstsq(A[-width:], signal[-width:], rcond=None)[0])
