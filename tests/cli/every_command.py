# SPDX-License-Identifier: Apache-2.0
"""One small call of every command of `qrane` that writes files, for tests and tools that try all of them."""
import shutil
import subprocess

import numpy as np


def write_inputs(folder):
    """The inputs of COMMANDS. False where the video cannot be made, for want of ffmpeg."""
    random = np.random.default_rng(3)
    np.save(folder / "tall.npy", random.standard_normal((60, 7)))
    np.save(folder / "wide.npy", random.standard_normal((7, 30)))
    np.save(folder / "b.npy", random.standard_normal((60, 2)))
    np.save(folder / "b7.npy", random.standard_normal((7, 1)))
    np.save(folder / "rows.npy", random.standard_normal((3, 7)))
    np.save(folder / "e.npy", random.standard_normal((3, 2)))
    entries = sorted({(int(i), int(j)) for i, j in zip(random.integers(1, 61, 240), random.integers(1, 21, 240))}
                     | {(j, j) for j in range(1, 21)})
    lines = [f"{i} {j} {1 + (7 * i + 3 * j) % 11}" for i, j in entries]
    (folder / "sparse.mtx").write_text("%%MatrixMarket matrix coordinate real general\n"
                                       f"60 20 {len(entries)}\n" + "\n".join(lines) + "\n")
    if shutil.which("ffmpeg"):
        frames = random.integers(0, 255, (6, 24, 32), dtype=np.uint8)
        made = subprocess.run(["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "gray", "-s", "32x24", "-i", "-",
                               "-c:v", "ffv1", str(folder / "video.mkv")], input=frames.tobytes(), check=False)
        return made.returncode == 0
    return False


# name: (arguments, outputs)
COMMANDS = {
    "info": (["info"], []),
    "qr": (["qr", "tall.npy", "--r", "r.npy", "--q", "q.npy"], ["r.npy", "q.npy"]),
    "qr-pivot": (["qr", "tall.npy", "--pivot", "--r", "r.npy", "--perm", "p.npy"], ["r.npy", "p.npy"]),
    "qr-sparse": (["qr", "sparse.mtx", "--sparse", "--r", "r.mtx"], ["r.mtx"]),
    "solve": (["solve", "tall.npy", "b.npy", "--x", "x.npy"], ["x.npy"]),
    "solve-wide": (["solve", "wide.npy", "b7.npy", "--x", "x.npy"], ["x.npy"]),
    "solve-sparse": (["solve", "sparse.mtx", "b.npy", "--x", "x.npy"], ["x.npy"]),
    "analyze": (["analyze", "sparse.mtx", "--picture", "tree.svg"], ["tree.svg"]),
    "svd": (["svd", "tall.npy", "--u", "u.npy", "--s", "s.npy", "--vt", "vt.npy"], ["u.npy", "s.npy", "vt.npy"]),
    "update": (["update", "tall.npy", "--insert-rows", "5:rows.npy", "--b", "b.npy", "--e", "e.npy", "--r", "r.npy",
                "--x", "x.npy"], ["r.npy", "x.npy"]),
    "background": (["background", "video.mkv", "--out", "out", "--max-iterations", "3"], []),
}
