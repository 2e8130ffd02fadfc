# SPDX-License-Identifier: Apache-2.0
"""A video's background: each frame is a column; what stays is of low rank, what moves is sparse."""
import numpy as np

import qrane

rng = np.random.default_rng(0)
height, width, frames = 48, 64, 60
scene = rng.random((height, width, 1)) * np.linspace(0.8, 1.0, frames)  # the light changes
video = scene.copy()
for t in range(frames):
    video[20:28, t:t + 8, t] = 1.5  # a bright square crosses

result = qrane.robust_pca(video.reshape(-1, frames), tol=1e-5)
background = result.low_rank.reshape(video.shape)
moving = np.abs(result.sparse.reshape(video.shape)) > 0.2
print(f"rank {result.rank} after {result.iterations} iterations")
inside = moving[20:28, 30:38, 30].mean()
print(f"{inside:.0%} of the square and {moving[:, :, 30].sum() - moving[20:28, 30:38, 30].sum()} other pixels move "
      "in frame 30")
assert result.converged and inside > 0.8 and np.linalg.norm(background - scene) < 0.05 * np.linalg.norm(scene)
