# SPDX-License-Identifier: Apache-2.0
"""Tables of the suite `paper-updates`."""

from tables.results import MODES, has_times, markdown, peer_ms, peers_of, short


def over(case, name):
    """The factor by which an update of a case is faster than something, in words."""
    if name == "refactor":
        return short(case["speed_up"]) + "x" if "speed_up" in case else "-"
    if name == "protocol":
        return short(case["paper_protocol"]["speed_up"]) + "x" if "paper_protocol" in case else "-"
    if name == "paper":
        ms = next((time.get("median_ms") for time in case["times"] if time["method"] == "paper"), None)
        return short(ms / case["median_ms"]) + "x" if ms else "-"
    ms = peer_ms(case, name)
    return short(ms / case["median_ms"]) + "x" if ms else "-"


def update_table(cases):
    """One row an update; both precisions beside each other."""
    pairs = {}
    for case in cases:
        key = tuple(case[name] for name in ("change", "rows", "cols", "k", "p", "mode")) + (case.get("block_cols", 0),)
        pairs.setdefault(key, {})[case["precision"]] = case
    peers = [name for name in peers_of([case for case in cases if has_times(case)]) if name != "lapack"]
    columns = [name for name in ("refactor", *peers, "paper", "protocol")
               if any(over(case, name) != "-" for case in cases if has_times(case))]
    heads = {"refactor": "refactoring", "paper": "method paper", "protocol": "paper's protocol"}
    rows = [("change", "size", "k", "p", "output", "method", "ms", "predicted ms", "error",
             *(heads.get(name, name) for name in columns))]
    for (change, m, n, k, p, mode, block), found in pairs.items():
        both = [found[precision] for precision in ("f32", "f64") if precision in found]
        measured = [case for case in both if has_times(case)]
        head = (change, f"{m:,} x {n:,}", f"{k:,}", f"{p:,}" +
     (f", nb = {block}" if block else ""), MODES.get(mode, mode))
        if not measured:
            rows.append(head + (both[0]["outcome"] + ": " + both[0]["reason"],) + ("",) * (3 + len(columns)))
            continue
        firsts = [case["times"][0] for case in measured]
        worst = [max(value for key,
                     value in time["errors"].items() if isinstance(value, (int, float)) and key != "limit")
                 if any(time["errors"].get(key) is not None for key in ("residual", "orthogonality")) else None
                 for time in firsts]
        rows.append(head + (" / ".join(dict.fromkeys(time["ran"] for time in firsts)),
                            " / ".join(short(case["median_ms"]) for case in measured),
                            " / ".join(short(time["predicted_ms"])
                                       if "predicted_ms" in time else "-" for time in firsts),
                            " / ".join(short(value) if value is not None else "-" for value in worst),
                            *(" / ".join(over(case, name) for case in measured) for name in columns)))
    return markdown(rows)


def accuracy_table(cases):
    """Andrew and Dingle's tables 3 to 5."""
    rows = [("change", "size", "p", "method", "forward error", "orthogonality", "backward error")]
    for case in cases:
        for time in case["times"]:
            if "accuracy" in time:
                values = (f"{time['accuracy'][name]:.1e}" for name in ("forward", "orthogonality", "backward"))
                method = time["method"] + (f", by {time['ran']}" if time.get("ran",
                                           time["method"]) != time["method"] else "")
                rows.append((case["change"], f"{case['rows']:,} x {case['cols']:,}", f"{case['p']:,}", method, *values))
    return markdown(rows) if len(rows) > 1 else ""


def stage_table(cases):
    """Its table 2: milliseconds of each stage."""
    rows = [("stage, ms", *(f"k = {case['k']:,}" for case in cases))]
    transfers = [case.get("paper_protocol", {}).get("transfer", {}).get("median_ms") for case in cases]
    rows.append(("transfer from the host", *(short(ms) if ms else "-" for ms in transfers)))
    for name in dict.fromkeys(name for case in cases for name in case["times"][0].get("stages", {})):
        rows.append((name, *(short(case["times"][0]["stages"][name]) for case in cases)))
    return markdown(rows)


def window_table(cases):
    rows = [("size", "output", "", "steps/s", "microseconds a step", "SciPy's time over it")]
    for case in cases:
        if has_times(case):
            rows.append((f"{case['rows']:,} x {case['cols']:,}", MODES[case["mode"]], case["precision"],
                         f"{case['steps_per_second']:,.0f}", short(1e3 * case["median_ms"]), over(case, "scipy")))
    return markdown(rows) if len(rows) > 1 else ""


def batch_table(cases):
    rows = [("change", "size", "matrices", "p", "output", "", "ms", "error", "refactoring")]
    for case in cases:
        if has_times(case):
            errors = [value for key, value in case["times"][0]["errors"].items()
                      if isinstance(value, (int, float)) and key != "limit"]
            rows.append((case["change"], f"{case['rows']:,} x {case['cols']:,}", f"{case['count']:,}", f"{case['p']:,}",
                         MODES[case["mode"]], case["precision"], short(case["median_ms"]), short(max(errors)),
                         over(case, "refactor")))
    return markdown(rows) if len(rows) > 1 else ""


def summary(updates):
    """How often an update is slower than what it is compared with, and in which cases."""
    lines = []
    timed = [case for case in updates if has_times(case)]
    for words, name in (("refactoring by qrane", "refactor"), ("a factorization by cuSOLVER", "cusolver"),
                        ("a full solve, by the paper's protocol with transfers", "protocol")):
        ratios = [(float(over(case, name)[:-1]), case) for case in timed
                  if over(case, name) != "-" and case["times"][0]["method"] == "automatic"]
        slow = [ratio for ratio, _ in ratios if ratio < 1]
        if ratios:
            least, case = min(ratios, key=lambda pair: pair[0])
            lines.append(f"- Compared with {words}: {len(slow)} of {len(ratios)} cases of `automatic` are slower; the "
                         f"least ratio is {short(least)}x ({case['change']}, {case['rows']:,} x {case['cols']:,}, "
                         f"p = {case['p']:,}, {MODES[case['mode']]}, {case['precision']}).")
    by_itself = sum(time.get("ran") == "refactor" for case in updates if case["kind"] == "accuracy"
                    for time in case["times"] if time["method"] == "automatic")
    if by_itself:
        lines.append(f"- In {by_itself} rows of Tables 3 to 5 `automatic` refactors: those compare a fresh "
                     "factorization with itself.")
    return "\n".join(lines)


def update_tables(updates):
    parts = [f"**In short**\n\n{summary(updates)}"] if summary(updates) else []
    for figure in dict.fromkeys(case["figure"] for case in updates):
        mine = [case for case in updates if case["figure"] == figure]
        by_kind = {"accuracy": accuracy_table, "window": window_table, "batch": batch_table}
        table = by_kind.get(mine[0]["kind"], update_table)(mine)
        staged = [case for case in mine if case["times"] and "stages" in case["times"][0]]
        if staged:
            table += "\n\n" + stage_table(staged)
        if table:
            parts.append(f"**{figure.capitalize()}**\n\n{table}")
    return parts
