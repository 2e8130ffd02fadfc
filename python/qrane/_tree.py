# SPDX-License-Identifier: Apache-2.0
"""TSQR of a matrix that comes in blocks of rows (Demmel, Grigori, Hoemmen, Langou, 2012).

The tree is fixed by row numbers: leaf i has the rows i * L .. (i + 1) * L - 1, L depends on the columns alone, and node
i of each level has the nodes 2 i and 2 i + 1 below it. Whoever computes which part, R and Q have the same bits.

    level 2          0
                 /       \\
    level 1     0         1         a node without a right child is its left child
               / \\       /
    leaves    0   1     2
"""

import numpy as np

from ._dense import qr


def leaf_rows(n):
    """L, a power of two: 2**18 elements or more, and 16 n rows or more, so that the tree costs little."""
    wanted = max(16 * n, 2**18 // max(n, 1))
    return 1 << (wanted - 1).bit_length()


def merge(upper, lower):
    """R of two blocks, from their R's."""
    return qr(np.concatenate([upper, lower]), "r", check_finite=False)


class Reduction:
    """Takes the R's of consecutive equal subtrees one by one; holds one for each level."""

    def __init__(self):
        self._waiting = []  # (level, R), levels falling

    def add(self, r):
        level = 0
        while self._waiting and self._waiting[-1][0] == level:
            r = merge(self._waiting.pop()[1], r)
            level += 1
        self._waiting.append((level, r))

    def result(self):
        r = self._waiting[-1][1]
        for _, upper in reversed(self._waiting[:-1]):
            r = merge(upper, r)
        return r


def leaves(block):
    """The leaves of a block that begins with one."""
    step = leaf_rows(block.shape[1])
    return [block[i:i + step] for i in range(0, max(block.shape[0], 1), step)]


def triangle(block, check_finite=None):
    """R of a block of leaves."""
    reduction = Reduction()
    for leaf in leaves(block):
        reduction.add(qr(leaf, "r", check_finite=check_finite))
    return reduction.result()


def pairs(nodes, join):
    """The levels of a tree over the nodes, from below; join(left, right) makes a node, and a last single one rises."""
    levels = [nodes]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([join(*below[i:i + 2]) if i + 1 < len(below) else below[i] for i in range(0, len(below), 2)])
    return levels


def descend(levels, root, split):
    """What split(node, i, w) hands down from the root to the leaves: w for each of them."""
    now = [root]
    for level, below in zip(reversed(levels[1:]), reversed(levels[:-1])):
        now = [split(level[i // 2], i % 2, now[i // 2]) if i ^ 1 < len(below) else now[i // 2]
               for i in range(len(below))]
    return now


class Node:
    """Q and R of two R's on top of each other, and how many rows the first has."""

    def __init__(self, left, right):
        self.rows = left.r.shape[0]
        self.q, self.r = qr(np.concatenate([left.r, right.r]), check_finite=False)

    def share(self, i, w):
        """The part of Q w that belongs to child i."""
        return (self.q[self.rows:] if i else self.q[:self.rows]) @ w


class Leaf:
    """Q and R of a leaf."""

    def __init__(self, rows, check_finite=None):
        self.q, self.r = qr(rows, check_finite=check_finite)


class Subtree:
    """A block of leaves with its Q, which is formed when what the nodes above say is known."""

    def __init__(self, block, check_finite=None):
        self._levels = pairs([Leaf(leaf, check_finite) for leaf in leaves(block)], Node)
        self.r = self._levels[-1][0].r

    def form(self, w):
        """Q w for w with as many rows as R."""
        shares = descend(self._levels, w, Node.share)
        return np.concatenate([leaf.q @ share for leaf, share in zip(self._levels[0], shares)])
