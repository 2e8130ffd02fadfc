# SPDX-License-Identifier: Apache-2.0
"""Tables of dense suites: factorizations, the grid, the inner kernel, robust PCA."""

from tables.results import MODES, asked, has_times, markdown, operation_label, peer_ms, peers_of, short


def percent(value):
    return f"{100 * value:.1f}%" if value < 0.095 else f"{100 * value:.0f}%"


def share(case):
    return percent(case["floor"]["ms"] / case["median_ms"])


def worst_error(case):
    errors = case.get("errors", {})
    values = [value for key, value in errors.items() if key not in ("limit", "how") and isinstance(value, (int, float))]
    return short(max(values)) if values else "-"


def ratios(case, peers):
    for name in peers:
        ms = peer_ms(case, name)
        yield short(ms / case["median_ms"]) + "x" if ms else "-"


def case_table(cases):
    peers = peers_of([case for case in cases if has_times(case)])
    calls = any("call" in case for case in cases)
    rows = [("size", "", "output", "algorithm", "ms", *(["one call, ms"] if calls else []), "TFLOP/s",
             "share of floor", *peers, "error")]
    for case in cases:
        what = MODES.get(case.get("mode"), case.get("operation", ""))
        head = (operation_label({**case, "mode": ""}), case["precision"], what)
        if not has_times(case):
            rows.append(head + (case["outcome"] + ": " + case["reason"],) + ("",) * (4 + calls + len(peers)))
            continue
        algorithm = case["algorithm"] + (", by name" if asked(case) != "automatic" else "")
        algorithm += (f", {case['stage']}" if case.get("stage") else "")
        algorithm += " (fell back)" if case.get("fell_back") and case.get("stage") != "tree" else ""
        call = [short(case["call"]["median_ms"]) if "call" in case else "-"] if calls else []
        rows.append(head + (algorithm, short(case["median_ms"]), *call, short(case["tflops"]), share(case),
                            *ratios(case, peers), worst_error(case)))
    return markdown(rows)


def grid_table(results):
    names = ("automatic", "tsqr", "cholesky_qr", "caqr", "blocked")
    rows = [("size", "", "automatic choice", "share of floor", *(f"{name}, ms" for name in names), "cuSOLVER")]
    for case in results["grid"]:
        times = {name: case["times"].get(name, {}).get("median_ms") for name in names}
        if not times["automatic"]:
            continue
        peer = next((short(peer["ratio"]) + "x" for peer in case["peers"] if "ratio" in peer), "-")
        rows.append((f"{case['rows']:,} x {case['cols']:,}", case["precision"], case["times"]["automatic"]["ran"],
                     percent(case["floor"]["ms"] / times["automatic"]),
                     *(short(times[name]) if times[name] else "-" for name in names), peer))
    lines = [("rows", "", "from", "columns", "is faster than")]
    for line in results["crossovers"]:
        lines.append((f"{line['rows']:,}", line["precision"], line["wide"], f"{line['cols']:.0f}", line["narrow"]))
    return markdown(rows) + ("\n\n" + markdown(lines) if len(lines) > 1 else "")


def kernel_table(results):
    kernels = [case for case in results["kernels"] if has_times(case)]
    widths = sorted({case["cols"] for case in kernels})
    rows = [("layout", "rows", *(f"{cols} columns" for cols in widths))]
    for layout in dict.fromkeys(case["layout"] for case in kernels):
        mine = [case for case in kernels if case["layout"] == layout]
        heights = ["4 x columns"] if layout == "tree" else sorted({case["rows"] for case in mine})
        for height in heights:
            found = {case["cols"]: case for case in mine if layout == "tree" or case["rows"] == height}
            rows.append((layout, str(height), *(f"{found[cols]['gflops']:,.0f}" if cols in found else "-"
                                                for cols in widths)))
    for height in sorted({entry["rows"] for entry in results["tree_shares"]}):
        found = {entry["cols"]: entry["share"] for entry in results["tree_shares"] if entry["rows"] == height}
        rows.append(("tree's share of the time", str(height),
                     *(f"{100 * found[cols]:.0f}%" if cols in found else "-" for cols in widths)))
    return markdown(rows)


def background_table(cases):
    rows = [("size", "", "data", "method", "iterations/s", "share of floor", "iterations to 1e-4", "rank")]
    data = {}
    for case in filter(has_times, cases):
        data[case["precision"]] = case["data"]
        count = ("" if case["converged"] else "> ") + str(len(case["convergence"]))
        rows.append((operation_label(case), case["precision"], case["data"], case["method"].replace("_", " "),
                     short(case["iterations_per_second"]), share(case), count, str(case["rank"])))
    seen = {}
    for case in cases:
        for peer in case.get("peers", []):
            if "median_ms" in peer:
                seen[peer["peer"], case["precision"]] = (operation_label(case), 1000 / peer["median_ms"])
    for (peer, precision), (size, rate) in seen.items():
        rows.append((size, precision, data.get(precision, ""), peer, short(rate), "", "", ""))
    return markdown(rows)
