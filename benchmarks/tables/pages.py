# SPDX-License-Identifier: Apache-2.0
"""Figures of Markdown pages, taken from the results.

A figure stands between two comments, a table of figures too; a claim is a comment before the sentence that makes it:

    <!--= RESULT WORDS : WHAT -->1.13 ms<!--/-->
    <!--? RESULT WORDS : WHAT >= 1 -->
    <!-- figures
    shape | float | double
    1,000,000 x 192 | RESULT WORDS : WHAT, WHAT | RESULT WORDS : WHAT
    --> ... <!-- end -->
    <!--from SOURCE-->183.3 GFLOP/s<!--/-->          a figure of somebody else's

RESULT is a file of results/ without its ending. WORDS choose cases: a size (1000x192), a precision, an output (r, thin,
implicit, lapack), a matrix's name, or KEY=VALUE with underscores for blanks; cases of an algorithm by name need
asked=NAME. WHAT is `ms`, `tflops`, `rate` (iterations or steps a second), `share` (of the floor), `x PEER` (its time
over qrane's), `x_total` (of a sparse matrix, with analysis and solution), or a member of the case, dots between levels.
`min`, `median`, `max`, `count` or `all` before it take several cases; `result` takes a member of the whole file.
A claim compares WHAT with a number or a word by <, <=, >, >= or ==; `count WHAT < 1 == 50` says how many do. Where
cases have a `data`, the paragraph names it.
"""

import operator
import re
from pathlib import Path
from statistics import median

from tables.results import MODES, asked, markdown, read_results
from tables.sparse import total_ratio

KINDS = ("cases", "operations", "grid", "kernels", "background", "updates", "sparse", "sparse_uses", "tiles")
DATA_WORDS = {"synthetic": "made-up", "vtest": "video"}  # of a case's `data`: what a page must call it
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
FIGURE = re.compile(r"(<!--= *(.*?) *-->)(.*?)(<!--/-->)", re.DOTALL)
CLAIM = re.compile(r"<!--\? *(.*?) *-->", re.DOTALL)
TABLE = re.compile(r"(<!-- figures\n(.*?)-->)(.*?)(<!-- end -->)", re.DOTALL)
QUOTED = re.compile(r"<!--from (.+?)-->.*?<!--/-->", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL)
UNITS = (r"ms|µs|us|ns|s|microseconds?|milliseconds?|seconds?|minutes?|[TGM]FLOP/s|[TG]B/s|"
         r"(?:iterations|steps|frames)/s|times|percent|%")
NUMBER = re.compile(rf"(?<![\w./])\d[\d.,]*(?:[ \u00a0]?(?:{UNITS})(?![\w/])|x(?![\w]))")
BOAST = re.compile(r"\b(none|never|no \w+|nothing)\b[^.|]{0,60}\b(slower|faster)\b|\bslower (in|than \w+ in) none\b|"
                   r"\b(all|every) (goals?|aims?)\b", re.IGNORECASE)


class Wrong(Exception):
    """A query that cannot be answered; the message says why."""


def spaced(word):
    return word.replace("_", " ")


def unit_of(what):
    """What pages write behind a value."""
    if what == "ms" or what.endswith("_ms"):
        return " ms"
    if what.startswith("x ") or what == "x_total" or what.endswith("speed_up"):
        return "x"
    return {"tflops": " TFLOP/s", "rate": "/s", "share": "%"}.get(what, "")


def shown(value, what):
    """A value as pages print it."""
    if isinstance(value, str):
        return value
    return (f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}") + unit_of(what)


class Results:
    """All results of a folder, read when they are asked for."""

    def __init__(self, folder):
        self.folder, self.known, self.used = Path(folder), {}, set()

    def of(self, name):
        if name not in self.known:
            path = self.folder / f"{name}.json"
            if not path.exists():
                raise Wrong(f"there is no result {path.name}")
            self.known[name] = read_results(path)
        self.used.add(name)
        return self.known[name]

    def cases(self, words):
        name, *wanted = words.split()
        results = self.of(name)
        cases = [case for kind in KINDS for case in results[kind]]
        if not any(word.startswith("asked=") for word in wanted):
            cases = [case for case in cases if asked(case) == "automatic"]
        for word in wanted:
            cases = [case for case in cases if fits(case, word)]
            if not cases:
                raise Wrong(f"no case of {name} is '{word}'")
        return cases

    def values(self, query):
        """The values of a query and the name of what they are; the cases, too."""
        words, _, what = query.partition(" : ")
        what = what.strip()
        if not what:
            raise Wrong(f"'{query}' does not say what of the cases is wanted")
        aggregate, _, rest = what.partition(" ")
        if aggregate == "result":
            value = value_of(self.of(words.strip()), rest)
            if value is None:
                raise Wrong(f"'{query}': the result has no such value")
            return [value], rest, []
        cases = self.cases(words)
        if aggregate not in ("min", "median", "max", "count", "all"):
            found = [value_of(case, what) for case in cases]
            if len(found) != 1:
                raise Wrong(f"'{query}' fits {len(found)} cases")
            if found[0] is None:
                raise Wrong(f"'{query}': the case has no such value")
            return found, what, cases
        found = [value for value in (value_of(case, rest) for case in cases) if value is not None]
        if aggregate == "count":
            return [len(found)], "count", cases
        if not found:
            raise Wrong(f"'{query}': no case has such a value")
        if aggregate != "all":
            found = [{"min": min, "median": median, "max": max}[aggregate](found)]
        return found, rest, cases

    def figure(self, query):
        """The text of a figure, and the cases behind it."""
        words, _, whats = query.partition(" : ")
        texts, behind = [], []
        for what in whats.split(", "):
            values, name, cases = self.values(f"{words} : {what}")
            texts.append(shown(values[0], name))
            behind += cases
        return ", ".join(texts), behind

    def claim(self, text):
        """Why a claim is false, or None; and the cases behind it."""
        counted = re.fullmatch(r"(.*) : count (.*?) (<=|>=|<|>) (\S+) == (\d+)", text)
        if counted:  # of some values so many compare so
            words, what, compare, bound, wanted = counted.groups()
            values, _, cases = self.values(f"{words} : all {what}")
            count = sum(COMPARE[compare](value, float(bound)) for value in values)
            words = f"{count} of {len(values)} are {compare} {bound}, not {wanted}"
            return (None if count == int(wanted) else words), cases
        match = re.fullmatch(r"(.*?) (<=|>=|==|<|>) (\S+)", text)
        if not match:
            raise Wrong(f"'{text}' compares nothing")
        query, compare, bound = match.groups()
        values, what, cases = self.values(query)
        values = [value.replace(" ", "_") if isinstance(value, str) else value for value in values]
        number = bound if isinstance(values[0], str) else float(bound)
        false = [value for value in values if not COMPARE[compare](value, number)]
        return (f"{query} is {shown(false[0], what)}, not {compare} {bound}" if false else None), cases


def fits(case, word):
    size = re.fullmatch(r"(\d+)x(\d+)", word)
    if size:
        return (case.get("rows"), case.get("cols")) == (int(size[1]), int(size[2]))
    if word in ("f32", "f64"):
        return case.get("precision") == word
    if word in MODES:
        return case.get("mode") == word
    key, equals, value = word.partition("=")
    if not equals:
        return word in (case.get("name"), case.get("operation"))
    if key in ("method", "ran") and case.get("figure") and case["times"]:  # of an update: the method that is compared
        return case["times"][0].get(key) == value
    return str(case.get(key)) in (value, spaced(value))


def value_of(case, what):
    """A value of a case, or None."""
    name, _, rest = what.partition(" ")
    if name == "x":
        peers = {peer["peer"]: peer.get("median_ms") for peer in case.get("peers", []) if "peer" in peer}
        if rest.startswith("fastest "):
            times = [ms for peer, ms in peers.items() if ms and peer.startswith(rest.removeprefix("fastest "))]
            return min(times) / case["median_ms"] if times and "median_ms" in case else None
        ms = peers.get(rest)
        return ms / case["median_ms"] if ms and "median_ms" in case else None
    if name == "x_total":
        total = total_ratio(case) if "median_ms" in case else None
        return 1 / total if total else None
    if name == "share":
        return 100 * case["floor"]["ms"] / case["median_ms"] if "median_ms" in case else None
    if name == "rate":
        return case.get("iterations_per_second", case.get("steps_per_second"))
    value = case
    for key in {"ms": "median_ms"}.get(name, name).split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(spaced(key), value.get(key))
    return None if isinstance(value, (dict, list)) else value


def paragraph_of(text, place):
    start = text.rfind("\n\n", 0, place)
    end = text.find("\n\n", place)
    return text[start + 1:end if end >= 0 else len(text)]


def line_of(text, place):
    return text.count("\n", 0, place) + 1


def data_fault(text, place, cases):
    """Why the paragraph does not say what the data of its figures are, and nothing else, or None."""
    paragraph = re.sub(r"<!--.*?-->", "", paragraph_of(text, place), flags=re.DOTALL).replace("made up", "made-up")
    for data in {case["data"] for case in cases if case.get("data")}:
        right = next((word for start, word in DATA_WORDS.items() if data.startswith(start)), data)
        if right not in paragraph:
            return f"the data of this figure are '{data}': the paragraph must say '{right}'"
        for word in set(DATA_WORDS.values()) - {right}:
            if word in paragraph:
                return f"the data of this figure are '{data}': the paragraph must not say '{word}'"
    return None


def figure_table(results, lines, fault):
    rows = []
    for line in lines.strip().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if rows:
            cells = cells[:1] + [answer(results, cell, fault) for cell in cells[1:]]
        rows.append(cells)
    return markdown(rows)


def answer(results, query, fault):
    if " : " not in query:
        return query
    try:
        text, cases = results.figure(query)
        fault(None, cases)
        return text
    except Wrong as wrong:
        fault(str(wrong), [])
        return "?"


def fill(text, results):
    """The page with all figures from the results, and its faults as (line, words)."""
    faults = []

    def at(match):
        def add(words, cases):
            words = words or data_fault(match.string, match.start(), cases)
            if words:
                faults.append((line_of(match.string, match.start()), words))
        return add

    for match in CLAIM.finditer(text):
        try:
            words, cases = results.claim(" ".join(match[1].split()))
            at(match)(f"this is not so: {words}" if words else None, cases)
        except Wrong as wrong:
            at(match)(str(wrong), [])
    filled = TABLE.sub(lambda m: f"{m[1]}\n{figure_table(results, m[2], at(m))}\n{m[4]}", text)
    filled = FIGURE.sub(lambda m: m[1] + answer(results, " ".join(m[2].split()), at(m)) + m[4], filled)
    return filled, faults


def blank(match):
    return "".join("\n" if c == "\n" else " " for c in match[0])


def plain_numbers(text):
    """Figures about speed that no comment takes from a result, and claims that no comment checks: (line, words)."""
    faults = []
    rest = CODE.sub(blank, text)
    claimed = rest
    for pattern in (TABLE, FIGURE, QUOTED):
        rest = pattern.sub(blank, rest)
    rest = re.sub(r"<!--.*?-->", blank, rest, flags=re.DOTALL)
    for match in NUMBER.finditer(rest):
        words = f"'{match[0].strip()}' is in no result: take it from one by a comment"
        faults.append((line_of(rest, match.start()), words))
    for match in BOAST.finditer(rest):
        if "<!--?" not in paragraph_of(claimed, match.start()):
            words = f"'{' '.join(match[0].split())}' is a claim: check it by a comment"
            faults.append((line_of(rest, match.start()), words))
    return faults
