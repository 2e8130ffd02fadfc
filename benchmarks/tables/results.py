# SPDX-License-Identifier: Apache-2.0
"""What `qrane bench SUITE --json FILE` wrote: reading and checking it, and the words for its cases.
"""

import json
from pathlib import Path

FORMAT, VERSION = "qrane-bench", 1
MODES = {"r": "R only", "thin": "thin Q", "full": "full Q", "implicit": "implicit Q", "lapack": "LAPACK-shaped"}
PRECISIONS = ("f32", "f64")


class BadFile(Exception):
    """A file that is not a result of `qrane bench`; the message names it."""


CASE_KEYS = {"rows": int, "cols": int, "precision": str, "mode": str, "outcome": str, "floor": dict,
             "flops": (int, float)}
TILE_KEYS = {"name": str, "kind": str, "precision": str, "bundle": int, "rows": int, "cols": int, "outcome": str,
             "reason": str}
MEASURED_TILE_KEYS = {"gflops": (int, float)}
BACKGROUND_KEYS = {"rows": int, "cols": int, "precision": str, "method": str, "outcome": str, "floor": dict}
OPERATION_KEYS = {"operation": str, "rows": int, "cols": int, "precision": str, "outcome": str, "floor": dict}
MEASURED_OPERATION_KEYS = {"median_ms": (int, float), "peers": list}
GRID_KEYS = {"rows": int, "cols": int, "precision": str, "outcome": str, "floor": dict, "times": dict}
KERNEL_KEYS = {"layout": str, "rows": int, "cols": int, "outcome": str, "floor": dict}
MEASURED_KERNEL_KEYS = {"median_ms": (int, float), "gflops": (int, float)}
MEASURED_CASE_KEYS = {"median_ms": (int, float), "gflops": (int, float), "peers": list, "algorithm": str}
UPDATE_KEYS = {"figure": str, "kind": str, "change": str, "rows": int, "cols": int, "k": int, "p": int, "mode": str,
               "precision": str, "outcome": str, "floor": dict, "times": list}
MEASURED_UPDATE_KEYS = {"median_ms": (int, float), "peers": list}
SPARSE_KEYS = {"name": str, "source": str, "rows": int, "cols": int, "entries": int, "outcome": str}
MEASURED_SPARSE_KEYS = {"median_ms": (int, float), "gflops": (int, float), "analysis": dict, "runs": list,
                        "peers": list,
                        "orderings": list}
USES_KEYS = {"name": str, "precision": str, "rows": int, "cols": int, "outcome": str}
MEASURED_USES_KEYS = {"median_ms": (int, float), "analysis": dict, "rank": int, "limits": list, "refactor": dict,
                      "uses": list}
MEASURED_BACKGROUND_KEYS = {"median_ms": (int, float), "iterations_per_second": (int, float), "convergence": list,
                            "tolerance": (int, float)}


def require(holder, keys, where):
    if not isinstance(holder, dict):
        raise BadFile(f"{where}: an object was expected, got {type(holder).__name__}")
    for key, kind in keys.items():
        if key not in holder:
            raise BadFile(f"{where}: '{key}' is missing")
        if not isinstance(holder[key], kind) or isinstance(holder[key], bool):
            raise BadFile(f"{where}: '{key}' has the wrong type ({type(holder[key]).__name__})")


def has_times(case):
    return "median_ms" in case


def read_results(path):
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise BadFile(f"{path}: {getattr(fault, 'strerror', None) or fault}") from None
    try:
        results = json.loads(text)
    except json.JSONDecodeError as fault:
        raise BadFile(f"{path}:{fault.lineno}: no JSON: {fault.msg}") from None
    if not isinstance(results, dict) or results.get("format") != FORMAT:
        raise BadFile(f"{path}: not written by `qrane bench` (no \"format\": \"{FORMAT}\")")
    if results.get("version") != VERSION:
        raise BadFile(f"{path}: version {results.get('version')} of the format; this script reads {VERSION}")
    require(results, {"suite": str, "device": dict, "cases": list, "background": list, "commit": str, "date": str},
            path)
    require(results["device"], {"name": str, "backend": str}, f"{path}: device")
    for later in ("operations", "grid", "crossovers", "kernels", "tree_shares", "updates", "sparse", "sparse_uses",
                  "tiles"):  # not in files of earlier programs
        results.setdefault(later, [])
    for kind, keys, more in (("cases", CASE_KEYS, MEASURED_CASE_KEYS),
                             ("operations", OPERATION_KEYS, MEASURED_OPERATION_KEYS),
                             ("grid", GRID_KEYS, {}), ("kernels", KERNEL_KEYS, MEASURED_KERNEL_KEYS),
                             ("updates", UPDATE_KEYS, MEASURED_UPDATE_KEYS),
                             ("sparse", SPARSE_KEYS, MEASURED_SPARSE_KEYS),
                             ("sparse_uses", USES_KEYS, MEASURED_USES_KEYS),
                             ("tiles", TILE_KEYS, MEASURED_TILE_KEYS),
                             ("background", BACKGROUND_KEYS, MEASURED_BACKGROUND_KEYS)):
        for index, case in enumerate(results[kind]):
            where = f"{path}: {kind}[{index}]"
            require(case, keys, where)
            if "floor" in keys:
                require(case["floor"], {"ms": (int, float)}, where + ": floor")
            if has_times(case):
                require(case, more, where)
                if not case["median_ms"] > 0:
                    raise BadFile(f"{where}: 'median_ms' must be positive, got {case['median_ms']}")
    return results


def peers_of(cases):
    return list(dict.fromkeys(peer["peer"] for case in cases for peer in case["peers"] if "median_ms" in peer))


def peer_ms(case, name):
    for peer in case["peers"]:
        if peer.get("peer") == name:
            return peer.get("median_ms")
    return None


def short(number):
    """Three digits without an exponent."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def operation_label(case):
    size = f"{case['rows']:,} x {case['cols']:,}"
    if case.get("mode") == "thin":
        size += ", thin Q"
    if case.get("count", 1) > 1:
        size = f"{case['count']:,} of " + size
    return size + (f", {case['rhs']} right-hand side{'s' if case['rhs'] > 1 else ''}" if case.get("rhs") else "")


def asked(case):
    """The algorithm that a factorization was asked for."""
    return case.get("asked", "automatic")


def markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0])] + lines[1:])
