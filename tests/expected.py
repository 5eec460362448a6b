"""Expected failures, and the figures of a run.

A failure because of an unsupported procedure needs no line in a list: unsupported.py recognises it, and it is counted by its subject.
Every other expected failure has a line in a list, `pattern  ranks  reason`: a shell pattern of test names, `*` or a list of rank
counts such as `1,4`, and the reason. The first line that covers a test decides. The list may only shrink: a covered test that passes
is as wrong as an uncovered one that fails, and in a complete run so is a line that covers no failure.
"""

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import harness
from unsupported import UNNAMED, Table

FIGURES = Path(__file__).resolve().parent.parent / "docs/figures/foreign.md"
KINDS = {"pass": "passed", "unsupported": "not supported yet", "expected": "failed as expected",
         "fail": "failed", "surprise": "passed unexpectedly", "skip": "skipped"}


@dataclass
class Line:
    pattern: str
    ranks: frozenset | None  # None: any number of ranks
    reason: str
    used: bool = False

    def covers(self, name: str, ranks: int) -> bool:
        return (self.ranks is None or ranks in self.ranks) and fnmatchcase(name, self.pattern)

    def text(self) -> str:
        ranks = "*" if self.ranks is None else ",".join(map(str, sorted(self.ranks)))
        return f"{self.pattern}  {ranks}  {self.reason}"


@dataclass
class Expectations:
    head: list = field(default_factory=list)  # comment lines at the top, kept by an update
    lines: list = field(default_factory=list)

    @classmethod
    def read(cls, path: Path | None) -> "Expectations":
        self = cls()
        if path is None or not path.exists():
            return self
        for number, text in enumerate(path.read_text().splitlines(), 1):
            if text.startswith("#") or not text.strip():
                if not self.lines:
                    self.head.append(text)
                continue
            parts = text.split(None, 2)
            if len(parts) < 3:
                raise SystemExit(f"{path}:{number}: not `pattern ranks reason`: {text!r}")
            pattern, ranks, reason = parts
            try:
                some = None if ranks == "*" else frozenset(map(int, ranks.split(",")))
            except ValueError:
                raise SystemExit(f"{path}:{number}: `{ranks}` is neither `*` nor a list of rank counts")
            self.lines.append(Line(pattern, some, reason))
        return self

    def find(self, name: str, ranks: int) -> Line | None:
        return next((line for line in self.lines if line.covers(name, ranks)), None)


@dataclass
class Judge:
    """Judges results one by one and counts them by rows: numbers of ranks, or folders."""

    expectations: Expectations
    unsupported: Table | None  # None: nothing is excused by it
    failures: dict = field(default_factory=dict)  # (name, ranks) -> why, for those that need a line
    sound: set = field(default_factory=set)  # (name, ranks) that passed
    wrong: list = field(default_factory=list)  # lines for the reader
    counts: dict = field(default_factory=dict)  # row -> {kind: count}
    times: list = field(default_factory=list)  # of the modules or programs, as `harness.Tally` keeps them
    subjects: dict = field(default_factory=dict)  # what is not supported -> failures that come of it

    def add(self, name: str, ranks: int, state: str, why: str = "", row=None) -> str:
        """`state` is pass, fail or skip; returns the kind of result, a key of KINDS."""
        line = self.expectations.find(name, ranks)
        kind = state
        subject = None
        if self.unsupported and state == "fail":
            subject = self.unsupported.subject(why)
        elif self.unsupported and state == "skip":
            subject = self.unsupported.subject_of_skip(why)
        if subject and not (line and subject == UNNAMED):
            kind = "unsupported"
            self.subjects[subject] = self.subjects.get(subject, 0) + 1
        elif state == "fail":
            self.failures[name, ranks] = why
            if line:
                line.used = True
                kind = "expected"
            else:
                self.wrong.append(f"FAIL {name} on {ranks}: {why}")
        elif state == "pass":
            self.sound.add((name, ranks))
            if line:
                kind = "surprise"
                self.wrong.append(f"FAIL {name} on {ranks}: passes, though expected to fail "
                                  f"({line.reason}); take it from the list")
        counts = self.counts.setdefault(ranks if row is None else row, dict.fromkeys(KINDS, 0))
        counts[kind] += 1
        return kind

    def close(self, suite: str, stale: list, began: float) -> int:
        """Keeps and prints the counts; the exit status. A failure for a known reason counts as passed."""
        passed = self.total("pass", "unsupported", "expected")
        failed = self.total("fail", "surprise") + len(stale)
        return harness.close(suite, harness.Tally(passed, failed, self.total("skip"), self.times), began)

    def total(self, *kinds: str) -> int:
        return sum(row[kind] for row in self.counts.values() for kind in kinds)

    def stale(self) -> list:
        return [f"FAIL no failure is covered by the line: {line.text()}"
                for line in self.expectations.lines if not line.used]

    def table(self) -> str:
        width = max([5, *(len(str(row)) for row in self.counts)])
        text = " " * width + "".join(f"{title:>21}" for title in KINDS.values()) + "\n"
        for row, counts in sorted(self.counts.items()):
            text += f"{row:<{width}}" + "".join(f"{counts[kind]:>21}" for kind in KINDS) + "\n"
        return text + self.waits()

    def markdown(self) -> str:
        """The counts as a table for a document, and the unsupported subjects."""
        kinds = ["pass", "unsupported", "expected", "skip"]
        text = "| | " + " | ".join(KINDS[kind] for kind in kinds) + " |\n| --- |" + " ---: |" * len(kinds) + "\n"
        for row, counts in sorted(self.counts.items()):
            text += f"| {row} | " + " | ".join(str(counts[kind]) for kind in kinds) + " |\n"
        return text + "\n" + self.waits()

    def waits(self) -> str:
        if not self.subjects:
            return ""
        most_first = sorted(self.subjects.items(), key=lambda item: (-item[1], item[0]))
        return "Not supported yet: " + ", ".join(f"{what} ({count})" for what, count in most_first) + ".\n"

    def write(self, path: Path, separator: str = ".") -> None:
        """The list that this run would need, with the old reasons. Names that fail alike are gathered
        under a pattern (see `gather`)."""
        reasons = {}
        for (name, ranks), why in self.failures.items():
            line = self.expectations.find(name, ranks)
            reasons.setdefault(name, {})[ranks] = line.reason if line else short(why)
        sound = {name for name, _ in self.sound}
        lines = []
        for pattern, name in sorted(gather(reasons, sound, separator).items()):
            by_reason = {}
            for ranks, reason in reasons[name].items():
                by_reason.setdefault(reason, set()).add(ranks)
            for reason, ranks in by_reason.items():
                always = len(by_reason) == 1 and name not in sound
                lines.append(Line(pattern, None if always else frozenset(ranks), reason).text())
        path.write_text("\n".join(self.expectations.head + lines) + "\n")


def gather(reasons: dict, sound: set, separator: str) -> dict:
    """The patterns that cover exactly the failing names, each with one of the names that it covers. Names
    with a common beginning become `BEGINNING.*` if all of them fail for one reason and none ever passes;
    of those left, names that differ only in the middle become `FIRST.*.LAST`; others stay."""
    patterns, left = {}, set(reasons)

    def take(groups: dict) -> None:
        for pattern, names in groups.items():
            why = {reason for name in names for reason in reasons[name].values()}
            if len(names) > 1 and len(why) == 1 and not any(fnmatchcase(name, pattern) for name in sound):
                patterns[pattern] = min(names)
                left.difference_update(names)

    deepest = max((name.count(separator) for name in reasons), default=0)
    for depth in range(1, deepest + 1):
        groups = {}
        for name in left:
            parts = name.split(separator)
            if len(parts) > depth:
                groups.setdefault(separator.join([*parts[:depth], "*"]), []).append(name)
        take(groups)
    groups = {}
    for name in left:
        if name.count(separator) >= 2:
            parts = name.split(separator)
            groups.setdefault(separator.join([parts[0], "*", parts[-1]]), []).append(name)
    take(groups)
    return patterns | {name: name for name in left}


def short(why: str) -> str:
    """A failure as a reason, without parts that differ from run to run."""
    text = re.sub(r"fishplate: rank \d+ \(pid [^)]*\) (failed: )?", "", " ".join(why.split()))
    return text[:140] or "unexplained"


def publish(mark: str, text: str) -> None:
    """Puts figures between the marks of that name in docs/figures/foreign.md."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    before, _, rest = FIGURES.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{FIGURES} has no lines {begin.strip()} and {end.strip()}")
    FIGURES.write_text(before + begin + text + end + after)
