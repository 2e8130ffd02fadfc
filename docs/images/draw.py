#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws tsqr_tree.svg and caqr_panel.svg, the figures of docs/architecture/dense.md.

    docs/images/draw.py [FOLDER] [--png]
"""
import os
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
matplotlib.rcParams["svg.hashsalt"] = "qrane"  # the same file every time
matplotlib.rcParams["font.family"] = "DejaVu Sans"
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, Polygon, Rectangle

DATA, REFLECTORS, TRIANGLE, UPDATED, DONE, EDGE = "#e8eef5", "#f6d9a8", "#3b6ea5", "#bcd9b5", "#f4f4f4", "#33475b"


def canvas(width, height):
    figure, axes = plt.subplots(figsize=(width / 10, height / 10))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)  # rows of a matrix go down
    axes.axis("off")
    figure.subplots_adjust(0, 0, 1, 1)
    return figure, axes


def box(axes, x, y, w, h, color, edge=EDGE, line=0.8, style="-"):
    axes.add_patch(Rectangle((x, y), w, h, facecolor=color, edgecolor=edge, linewidth=line, linestyle=style))


def triangle(axes, x, y, w, h, color=TRIANGLE):
    axes.add_patch(Polygon([(x, y), (x + w, y), (x + w, y + h)], facecolor=color, edgecolor=EDGE, linewidth=0.8))


def say(axes, x, y, text, size=8, **how):
    axes.text(x, y, text, fontsize=size, ha=how.pop("ha", "center"), va=how.pop("va", "center"), **how)


def arrow(axes, start, end, bend=0.0):
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=7, linewidth=0.9, color=EDGE,
                                   connectionstyle=f"arc3,rad={bend}"))


def tsqr_tree(path):
    """One panel of 7 blocks, 3 triangles a node: the tree in the head of src/dense/tree.hpp."""
    figure, axes = canvas(106, 66)
    w, h, top, blocks = 9, 7.2, 9, 7
    columns = [5, 30, 57, 84]
    titles = ["the panel", "level 0: factor", "level 1: factor_tree", "level 2: factor_tree"]
    notes = ["7 blocks of h rows", "7 tasks, contiguous rows", "2 tasks of 3 heads, h rows apart",
             "1 task of 3 heads, 3h rows apart"]
    heads = [[], list(range(7)), [0, 3, 6], [0]]
    fresh = [[], list(range(7)), [1, 2, 4, 5], [3, 6]]  # blocks whose triangle just became reflectors
    for stage, x in enumerate(columns):
        say(axes, x + w / 2, 2.6, titles[stage], 9, weight="bold")
        say(axes, x + w / 2, 5.6, notes[stage], 7)
        for b in range(blocks):
            y = top + b * h
            box(axes, x, y, w, h, DATA if stage == 0 else REFLECTORS)
            if stage > 0:
                color = TRIANGLE if b in heads[stage] else "#e9a64a" if b in fresh[stage] else "#f0c27c"
                triangle(axes, x, y, w, h * 0.62, color)
    groups = {1: [[b] for b in range(7)], 2: [[0, 1, 2], [3, 4, 5], [6]], 3: [[0, 3, 6]]}
    for stage in (1, 2, 3):
        left, right = columns[stage - 1] + w + 0.6, columns[stage] - 0.6
        for group in groups[stage]:
            for b in group:
                arrow(axes, (left, top + b * h + h * 0.3), (right, top + group[0] * h + h * 0.3))
    y = top + blocks * h + 4.5
    for x, color, text in [(5, TRIANGLE, "R that is still alive"), (33, "#e9a64a", "reflectors made at this level"),
                           (67, "#f0c27c", "reflectors of earlier levels")]:
        triangle(axes, x, y - 1.2, 3.4, 2.4, color)
        say(axes, x + 4.4, y, text, 7.5, ha="left")
    figure.savefig(path, metadata={"Date": None} if path.endswith("svg") else None, dpi=110)


def grid(axes, x, y, rows, cols, row0, col0, cell, height, color):
    """Blocks of the matrix from block row row0 (in rows) and column col0 on, drawn as a grid."""
    start = y + row0
    while start < y + rows:
        end = min(start + height, y + rows)
        for c in range(col0, cols):
            box(axes, x + c * cell, start, cell, end - start, color)
        start = end


def caqr_panel(path):
    """One panel step of CAQR, and the grid of the next one."""
    figure, axes = canvas(124, 56)
    cell, cols, height, rows, top = 5.4, 4, 10, 40, 8
    lefts = [3, 34, 65, 96]
    titles = ["1  factor", "2  apply_qt_h", "3  factor_tree, apply_qt_tree", "4  the next panel"]
    notes = ["each block of the panel on its own", "its reflectors, along its row of blocks",
             "triangles, and the rows beside them", "the grid drawn anew, one panel lower"]
    for step, x in enumerate(lefts):
        say(axes, x + cols * cell / 2, 2.4, titles[step], 8.5, weight="bold")
        say(axes, x + cols * cell / 2, 5.2, notes[step], 6.8)
        if step == 3:
            box(axes, x, top, cols * cell, cell, DONE)
            box(axes, x, top, cell, rows, REFLECTORS)
            triangle(axes, x, top, cell, cell)
            box(axes, x + cell, top, (cols - 1) * cell, cell, TRIANGLE)
            say(axes, x + 2.5 * cell, top + cell / 2, "R, finished", 7, color="white")
            grid(axes, x, top, rows, cols, cell, 1, cell, height, DATA)
            box(axes, x + cell, top + cell, cell, rows - cell, "none", "#c0392b", 2)
            continue
        grid(axes, x, top, rows, cols, 0, 0, cell, height, DATA)
        for b in range(rows // height):
            y = top + b * height
            box(axes, x, y, cell, height, REFLECTORS)
            triangle(axes, x, y, cell, cell, TRIANGLE if step < 2 or b == 0 else "#e9a64a")
            if step == 1:
                for c in range(1, cols):
                    box(axes, x + c * cell, y, cell, height, UPDATED)
                arrow(axes, (x + cell * 0.7, y + height * 0.75), (x + cols * cell - 0.6, y + height * 0.75))
            if step == 2:
                for c in range(1, cols):
                    box(axes, x + c * cell, y, cell, cell, UPDATED)
                if b > 0:
                    arrow(axes, (x + cell * 0.75, y + 0.4), (x + cell * 0.75, top + cell * 0.9 + (b - 1) * 0.2),
                          0.22 + 0.05 * b)
        box(axes, x, top, cell, rows, "none", "#c0392b", 2)
    y = top + rows + 4.2
    for x, color, text in [(3, DATA, "not touched in this step"), (33, REFLECTORS, "reflectors"), (52, TRIANGLE, "R"),
                           (63, "#e9a64a", "R of a block, become reflectors"), (103, UPDATED, "updated")]:
        box(axes, x, y - 1.2, 3.2, 2.4, color)
        say(axes, x + 4.2, y, text, 7.2, ha="left")
    figure.savefig(path, metadata={"Date": None} if path.endswith("svg") else None, dpi=110)


if __name__ == "__main__":
    folders = [a for a in sys.argv[1:] if not a.startswith("--")]
    folder = folders[0] if folders else os.path.dirname(os.path.abspath(__file__))
    ending = ".png" if "--png" in sys.argv else ".svg"
    tsqr_tree(os.path.join(folder, "tsqr_tree" + ending))
    caqr_panel(os.path.join(folder, "caqr_panel" + ending))
