# SPDX-License-Identifier: Apache-2.0
"""Goals for an H200, and what was reached."""

from tables.dense import share
from tables.results import MODES, asked, has_times, markdown, operation_label, peer_ms, short

NO_RIVALS = ("lapack", "cublas-cholqr2")  # the host, and a method that fails on ill-conditioned matrices
TALL = [(1000, 192), (10_000, 192), (50_000, 192), (100_000, 192), (500_000, 192), (1_000_000, 192)]


class Goal:
    """What a case should reach: times a peer's speed, or a rate, or a multiple of the floor."""

    def __init__(self, words, suite, where, peer, must, aim, precision="f32"):
        self.words, self.suite, self.where = words, suite, dict(where, precision=precision)
        self.peer, self.must, self.aim = peer, must, aim

    def find(self, files):
        results = files.get(self.suite)
        kinds = ("cases", "operations", "background", "updates")
        cases = [case for kind in kinds for case in (results or {}).get(kind, [])]
        return next((case for case in cases if has_times(case) and asked(case) == "automatic"
                     and all(case.get(key) == value for key, value in self.where.items())), None)

    def reached(self, case):
        if self.peer == "iterations/s":
            return case["iterations_per_second"]
        if self.peer == "steps/s":
            return case["steps_per_second"]
        if self.peer == "refactoring":
            return case.get("speed_up")
        if self.peer == "fastest torch SVD":
            times = [peer["median_ms"] for peer in case["peers"] if peer["peer"].startswith("torch") and
                     "median_ms" in peer]
            return min(times) / case["median_ms"] if times else None
        ms = peer_ms(case, self.peer)
        return ms / case["median_ms"] if ms else None

    def text(self, value):
        if self.peer in ("iterations/s", "steps/s"):
            return f"{value:,.0f}/s"
        return short(value) + "x"


def qr_goal(words, suite, rows, cols, mode, must, aim):
    """Goals against cuSOLVER; must and aim by precision."""
    where = {"rows": rows, "cols": cols, "mode": mode}
    return [Goal(words, suite, where, "cusolver", must[k], aim[k], precision)
            for k, precision in enumerate(("f32", "f64")) if k < len(must)]


def goals():
    list_of = []
    must = {1000: (3, 3), 10_000: (5, 4), 50_000: (8, 6), 100_000: (10, 7), 500_000: (10, 7), 1_000_000: (10, 7)}
    for rows, cols in TALL:
        aim = (20, 12) if rows == 1_000_000 else tuple(2 * value for value in must[rows])
        list_of += qr_goal(f"{rows:,} x {cols}, R only", "paper-table1", rows, cols, "r", must[rows], aim)
    list_of += qr_goal("1,000,000 x 192, thin Q", "paper-table1", 1_000_000, 192, "thin", (10, 7), (18, 13))
    for mode in ("r", "thin"):
        list_of += qr_goal(f"110,592 x 100, {MODES[mode]}", "skinny", 110_592, 100, mode, (12,), (25,))
    list_of += qr_goal("10,000,000 x 8, R only", "skinny", 10_000_000, 8, "r", (300,), (900,))
    list_of += qr_goal("10,000,000 x 8, thin Q", "skinny", 10_000_000, 8, "thin", (300,), (450,))
    for rows, cols, least in ((4_000_000, 16, 200), (1_000_000, 32, 10), (1_000_000, 64, 10)):
        list_of += qr_goal(f"{rows:,} x {cols}, R only", "skinny", rows, cols, "r", (least,), (None,))
    for cols, least, most in ((64, 2, 4), (512, 3, 8), (2048, 3, 6), (8192, 2, 3)):
        list_of += qr_goal(f"8192 x {cols}, LAPACK-shaped", "paper-width", 8192, cols, "lapack", (least, least),
                           (most, most))
    list_of += qr_goal("32,768 x 32,768, LAPACK-shaped", "square", 32_768, 32_768, "lapack", (1.1, 1.1), (1.4, 1.4))
    for rows, cols in TALL:  # half of the ratio for well-conditioned matrices, and never below 1
        for mode in ("r", "thin") if rows == 1_000_000 else ("r",):
            half = tuple(max(1, value / 2) for value in must[rows])
            list_of += qr_goal(f"{rows:,} x {cols}, {MODES[mode]}, condition 1/u", "ill-conditioned", rows, cols, mode,
                               half, (None, None))
    for rows, cols, modes, least in ((110_592, 100, ("r", "thin"), 6), (10_000_000, 8, ("r", "thin"), 150),
                                     (4_000_000, 16, ("r",), 100), (1_000_000, 32, ("r",), 5),
                                     (1_000_000, 64, ("r",), 5)):
        for mode in modes:
            list_of += qr_goal(f"{rows:,} x {cols}, {MODES[mode]}, condition 1/u", "ill-conditioned", rows, cols, mode,
                               (least,), (None,))
    for count, size, least, most in ((640, 512, 20, 150), (60, 1024, 8, 30), (8, 2048, 4, 10)):
        where = {"rows": size, "cols": size, "count": count, "mode": "lapack"}
        list_of.append(Goal(f"batch of {count} of {size} x {size}", "batched", where, "torch-geqrf", least, most))
    for rows, cols in ((64, 16), (32, 32)):
        where = {"rows": rows, "cols": cols, "count": 100_000, "mode": "lapack"}
        list_of.append(Goal(f"batch of 100,000 of {rows} x {cols}", "batched", where, "cublas-geqrf-batched", 4, None))
    list_of.append(Goal("SVD of 110,592 x 100", "svd", {"rows": 110_592, "cols": 100}, "fastest torch SVD", 3, 8))
    for rows, cols, least, most in ((110_592, 100, 10, 20), (1_000_000, 192, 10, 20), (8000, 4000, 2, 4)):
        list_of.append(Goal(f"least squares {rows:,} x {cols}", "gels", {"rows": rows, "cols": cols}, "torch-lstsq",
                            least, most))
    list_of.append(Goal("robust PCA 110,592 x 100", "background", {"rows": 110_592, "method": "inexact_alm"},
                        "iterations/s", 700, 1500))
    return list_of + update_goals()


def update_goals():
    """Updates of a thin Q (and of R alone) against qrane's own factorization of the updated matrix."""
    list_of = []
    for cols, least in ((1000, (6, 3, 5, 4, 10)), (4000, (20, 8, 12, 10, 30))):
        kinds = (("insert rows", 0), ("delete rows", 50_000), ("insert columns", cols), ("insert columns", cols // 2),
                 ("delete columns", cols // 2))
        for (change, k), must in zip(kinds, least):
            for mode in ("thin", "r") if cols == 1000 else ("thin",):
                where = {"figure": "goal", "rows": 100_000, "cols": cols, "change": change, "k": k, "p": 32,
                         "mode": mode}
                list_of.append(Goal(f"100,000 x {cols}, {change} {k}:32, {MODES[mode]}", "paper-updates", where,
                                    "refactoring", must if mode == "thin" else 4, None, "f64"))
    where = {"figure": "goal", "change": "delete rows", "p": 12_500, "mode": "thin"}
    list_of.append(Goal("100,000 x 1000, an eighth of the rows out", "paper-updates", where, "refactoring", 2, None,
                        "f64"))
    where = {"figure": "sliding window", "mode": "r"}
    for precision in ("f32", "f64"):
        list_of.append(Goal("sliding window of 4096 x 64, R and d", "paper-updates", where, "steps/s", 20_000, None,
                            precision))
    return list_of


def goal_table(files):
    rows = [("case", "", "ms", "share of floor", "against", "reached", "goal", "aim", "")]
    for goal in goals():
        case = goal.find(files)
        value = goal.reached(case) if case else None
        verdict = "not measured"
        if value is not None:
            verdict = "aim" if goal.aim and value >= goal.aim else "met" if value >= goal.must else "**missed**"
        made_up = " (made-up matrix)" if case and case.get("data", "").startswith("synthetic") else ""
        rows.append((goal.words + made_up, goal.where["precision"], short(case["median_ms"]) if case else "-",
                     share(case) if case else "-", goal.peer, goal.text(value) if value is not None else "-",
                     goal.text(goal.must), goal.text(goal.aim) if goal.aim else "-", verdict))
    return markdown(rows) + "\n\n" + slower_cases(files)


def slower_cases(files):
    """Every case of `automatic` that a library is faster at; the host's LAPACK and Cholesky QR by cuBLAS aside, updates
    and sparse matrices, too."""
    slower, count = [], 0
    for suite, results in files.items():
        for case in [case for kind in ("cases", "operations", "grid") for case in results[kind]]:
            for peer in case.get("peers", []):
                if "ratio" not in peer or asked(case) != "automatic" or peer["peer"].startswith(NO_RIVALS):
                    continue
                count += 1
                if peer["ratio"] < 1:
                    what = MODES.get(case.get("mode"), case.get("operation", ""))
                    slower.append(f"{suite}, {operation_label({**case, 'mode': ''})}, {case['precision']}, {what}: "
                                  f"{peer['peer']} takes {short(peer['ratio'])} of its time")
    if not count:
        return "No case was measured beside another library on the same device."
    if not slower:
        return (f"Of {count} comparisons of dense factorizations, batches, SVDs and least squares by `automatic` with "
                "another library on the same device, qrane is slower in none.")
    return f"Slower than another library, of {count} comparisons:\n\n" + "\n".join(f"- {line}" for line in slower)
