"""Lists of expected failures: one line each, `pattern  ranks  reason`.

`pattern` is a shell pattern over test names, `ranks` is `*` or a list such as `1,4`, and the reason
is the rest of the line. A test is judged by the first line that covers it. The list may only
shrink: a covered test that passes is as wrong as an uncovered one that fails, and so is a line that
covers no failure at all (said only of complete runs).
"""

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path


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
class Tally:
    """Judges results one by one and keeps the counts, by number of ranks."""

    expectations: Expectations
    failures: dict = field(default_factory=dict)  # (name, ranks) -> why, expected or not
    sound: set = field(default_factory=set)  # (name, ranks) that passed
    wrong: list = field(default_factory=list)  # lines for the reader
    counts: dict = field(default_factory=dict)  # ranks -> {kind: count}

    def add(self, name: str, ranks: int, state: str, why: str = "") -> str:
        """`state` is pass, fail or skip; returns what it amounts to."""
        line = self.expectations.find(name, ranks)
        kind = state
        if state == "fail":
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
        row = self.counts.setdefault(ranks, dict.fromkeys(KINDS, 0))
        row[kind] += 1
        return kind

    def total(self, *kinds: str) -> int:
        return sum(row[kind] for row in self.counts.values() for kind in kinds)

    def stale(self) -> list:
        return [f"FAIL no failure is covered by the line: {line.text()}"
                for line in self.expectations.lines if not line.used]

    def table(self) -> str:
        text = f"{'ranks':>6}" + "".join(f"{title:>22}" for title in KINDS.values()) + "\n"
        for ranks, row in sorted(self.counts.items()):
            text += f"{ranks:>6}" + "".join(f"{row[kind]:>22}" for kind in KINDS) + "\n"
        return text

    def write(self, path: Path, separator: str = ".") -> None:
        """The list that this run would need, with the old reasons. What stands before the last
        separator of a name is its class: a class that fails as a whole becomes one line."""
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


KINDS = {"pass": "passed", "expected": "failed as expected", "fail": "failed",
         "surprise": "passed unexpectedly", "skip": "skipped"}


def gather(reasons: dict, sound: set, separator: str) -> dict:
    """The patterns that cover exactly the failing names, each with one of the names that it covers:
    `CLASS.*` where all of a class fail for one reason and none ever passes, else the name itself."""
    classes, good = {}, {name.rpartition(separator)[0] for name in sound}
    for name in reasons:
        classes.setdefault(name.rpartition(separator)[0], []).append(name)
    patterns = {}
    for stem, names in classes.items():
        why = {reason for name in names for reason in reasons[name].values()}
        if stem and stem not in good and len(why) == 1 and len(names) > 1:
            patterns[f"{stem}{separator}*"] = names[0]
        else:
            patterns.update((name, name) for name in names)
    return patterns


def short(why: str) -> str:
    """A failure as a reason: without what differs from run to run."""
    if missing := re.search(r"\bMPI_\w+ is not supported yet", why):
        return missing[0]
    text = re.sub(r"fishplate: rank \d+ \(pid [^)]*\) (failed: )?", "", " ".join(why.split()))
    return text[:140] or "unexplained"
