# SPDX-License-Identifier: Apache-2.0
"""Many small factorizations in one call: an optimizer that keeps an orthonormal basis of each layer's recent gradients.

2,000 layers have gradients of 32 parameters in 8 steps. One batched QR gives every basis; projecting on it says how
much of a new gradient is new.
"""
import numpy as np

import qrane

rng = np.random.default_rng(0)
layers, parameters, steps = 2000, 32, 8
history = rng.standard_normal((layers, parameters, steps))
Q, R = qrane.qr(history)

weights = rng.standard_normal((layers, steps, 1))
seen = history @ weights  # a gradient that lies in the basis
unseen = rng.standard_normal((layers, parameters, 1))
for name, gradient in (("seen", seen), ("unseen", unseen)):
    rest = gradient - Q @ (np.swapaxes(Q, 1, 2) @ gradient)
    share = np.linalg.norm(rest, axis=1) / np.linalg.norm(gradient, axis=1)
    print(f"{name}: {share.mean():.3f} of a gradient is new, on average over {layers} layers")
    assert (share.max() < 1e-12) == (name == "seen")
