#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the four pictures of one frame that `qrane background` wrote side by side: docs/images/background.png.

    build/cli/qrane background data/vtest_384x288_100.mp4 --out out/background
    docs/images/montage.py out/background 83
"""
import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

folder, frame = sys.argv[1], int(sys.argv[2])
titles = {"frame": "a frame", "background": "background (low rank)", "foreground": "what moves (sparse)",
          "mask": "mask"}
figure, all_axes = plt.subplots(1, 4, figsize=(12, 2.55))
for axes, (name, title) in zip(all_axes, titles.items()):
    axes.imshow(plt.imread(os.path.join(folder, f"{name}_{frame:06d}.png")), cmap="gray", vmin=0, vmax=1)
    axes.set_title(title, fontsize=10)
    axes.axis("off")
figure.subplots_adjust(0.004, 0.01, 0.996, 0.88, wspace=0.02)
figure.savefig(os.path.join(os.path.dirname(os.path.abspath(__file__)), "background.png"), dpi=110,
               metadata={"Software": None})
