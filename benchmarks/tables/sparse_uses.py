# SPDX-License-Identifier: Apache-2.0
"""Tables and pictures of the suite `sparse-uses`, for report and plot: factorizations within memory limits, and what
factors are used for."""

from tables.results import has_times, markdown, short
from tables.sparse import factor, ms_of, ratio

USES = {"solve": "least squares, Q kept", "apply QT": "Qᵀ applied", "apply Q": "Q applied",
        "least norm": "least norm, Q kept",
        "solve without Q": "least squares, Q discarded (corrected semi-normal equations)",
        "solve what rode along": "least squares, right-hand side given with the values",
        "refine": "least squares, factored in float, refined"}


def median_of(holder, key):
    return holder[key]["median_ms"] if key in holder else None


def mebibytes(holder, key):
    return short(holder[key] / 2**20) if holder.get(key) else "-"


def label(case):
    return case["name"] if case["precision"] == "f64" else f"{case['name']}, {case['precision']}"


def factor_table(cases):
    rows = [("matrix", "rows x cols", "GFlop", "rank", "values to R, ms", "refactor", "over the first", "Q kept, ms",
             "MiB",
             "on the host's cores", "SuiteSparseQR, Q kept", "in float, ms")]
    for case in cases:
        rows.append((label(case), f"{case['rows']:,} x {case['cols']:,}", short(case["analysis"]["flops"] * 1e-9),
                     f"{case['rank']:,}", short(case["median_ms"]), ms_of(case, "refactor"),
                     factor(ratio(median_of(case, "refactor"), case["median_ms"])), ms_of(case, "keep_q"),
                     mebibytes(case.get("keep_q", {}), "peak_bytes"), ms_of(case, "host"),
                     ms_of(case, "peer") if "median_ms" in case.get("peer", {}) else "-", ms_of(case, "single")))
    return markdown(rows)


def limit_table(cases):
    rows = [("matrix", "share of the memory", "limit, MiB", "most, MiB", "by the device's free memory", "moved, MiB",
             "stages", "ms", "over no limit", "R")]
    for case in cases:
        for limit in case["limits"]:
            words = (label(case), f"{limit['share']:.3g}" if limit["limit_bytes"] else "no limit",
                     mebibytes(limit, "limit_bytes"))
            if "median_ms" not in limit:
                rows.append(words + ("refused",) + ("",) * 6)
                continue
            rows.append(words + (mebibytes(limit, "peak_bytes"), mebibytes(limit, "measured_bytes"),
                                 mebibytes(limit, "moved_bytes"), str(limit["stages"]), short(limit["median_ms"]),
                                 factor(limit["median_ms"] / case["median_ms"]),
                                 "the same bits" if limit["same_bits"] else "**differs**"))
    return markdown(rows)


def use_table(cases):
    rows = [
    ("matrix",
    "use",
    "right-hand sides",
    "ms",
    "from and to the host",
    "the host's cores",
    "SuiteSparseQR",
     "error")]
    for case in cases:
        for use in case["uses"]:
            across = median_of(use, "from_host")
            words = USES.get(use["use"], use["use"])
            if use["use"] == "refine":
                words += f" ({use['iterations']} steps{'' if use['converged'] else ', not converged'})"
            rows.append((label(case), words, str(use["rhs"]), ms_of(use, "device"), ms_of(use, "from_host"),
                         factor(ratio(median_of(use, "host"), across)), factor(ratio(median_of(use, "peer"), across)),
                         f"{use['error']:.1e}" if use.get("error") is not None else "-"))
    return markdown(rows)


def sparse_uses_tables(results):
    cases = [case for case in results["sparse_uses"] if has_times(case)]
    parts = []
    if cases:
        for heading, table in (("Factorizations", factor_table), ("Within a memory limit, Q discarded", limit_table),
                               ("Uses", use_table)):
            parts.append(f"**{heading}**\n\n{table(cases)}")
    left = [f"{label(case)} ({case['reason']})" for case in results["sparse_uses"] if not has_times(case)]
    if left:
        parts.append("Not measured: " + "; ".join(left) + ".")
    return parts


def draw_uses(plt, cases, title):
    """Bars: milliseconds of each use with most right-hand sides, a panel for each matrix."""
    figure, axes = plt.subplots(len(cases), 1, figsize=(8, 0.4 + 2.2 * len(cases)), squeeze=False)
    for ax, case in zip(axes[:, 0], cases):
        most = max(use["rhs"] for use in case["uses"])
        mine = [use for use in case["uses"] if use["rhs"] == most]
        bars = (("device", "#0072B2", "device"), ("from_host", "#56B4E9", "device, from and to the host"),
                ("host", "#009E73", "the host's cores"), ("peer", "#CC79A7", "SuiteSparseQR"))
        for place, (key, colour, words) in enumerate(bars):
            shown = [(row, median_of(use, key)) for row, use in enumerate(mine) if key in use]
            ax.barh([row + 0.2 * place - 0.3 for row, _ in shown], [ms for _, ms in shown], height=0.2, color=colour,
                    label=words)
        ax.set_yticks(range(len(mine)), [use["use"] for use in mine], fontsize=8)
        ax.invert_yaxis()
        ax.set_xscale("log")
        ax.set_title(f"{label(case)}, {most} right-hand sides", fontsize=9)
    axes[0, 0].legend(fontsize=7)
    axes[-1, 0].set_xlabel("ms")
    figure.suptitle(title, fontsize=11)
    figure.tight_layout(rect=(0, 0, 1, 0.98))
    return figure


def draw_limits(plt, cases, title):
    """Time over that without a limit, against the share of the memory."""
    figure, ax = plt.subplots(figsize=(7, 4.5))
    for case in cases:
        points = sorted((limit["share"], limit["median_ms"] / case["median_ms"]) for limit in case["limits"]
                        if "median_ms" in limit)
        ax.plot([share for share, _ in points], [slower for _, slower in points], marker="o", markersize=4,
                label=label(case))
    ax.set_xlabel("limit, share of the memory that is taken without one")
    ax.set_ylabel("time over that without a limit")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout(rect=(0, 0, 1, 0.97))
    return figure


def sparse_uses_pictures(plt, results, title):
    cases = [case for case in results["sparse_uses"] if has_times(case)]
    if any(len(case["limits"]) > 1 for case in cases):
        yield "limits", draw_limits(plt, cases, title)
    cases = [case for case in cases if case["uses"]]
    if cases:
        yield "uses", draw_uses(plt, cases, title)
