#!/usr/bin/env python3
"""Draws faults as draw.py does, and compiles all of them at once: each has a switch that is read at run time.

    tests/mutants/schemata.py [--count 30] [--seed N] [--only NUMBER...] [--seconds N] [--list] [FILE...]

One fault is drawn for each suite of `make test-ci`, in a file that it protects; further ones, up to the count, from all files. Where a line changes from
`if a < b {` to `if a <= b {`, the copy of the tree (build/mutants) has

    if (if crate::planted::is(17) { a <= b } else { a < b }) {

The smallest part of the line that is an expression is switched, so that nothing else is. Drawn again is what has no such part (patterns, expressions of
several lines), what does not compile (constants, or the change itself), and what runs while crates are built (generators). The tree is built once, with the
commands and tests of all crates. build/mutants/build/chosen has the number of the fault that happens. Its absolute path is compiled in, because launchers, sandboxes
and other hosts drop environment variables. Each crate of a process reads it once, and a switch is one relaxed load.

For each fault run the tests and suites that tests/affected.py chooses, and the first failure ends them. A failure counts if the same tests or suite pass with no
fault chosen, which is tried once. Suites that the switches themselves break are LEFT_OUT: the fault of such a suite is planted alone, as draw.py does, and last.
The seed that is printed repeats the series. The last lines are the faults that nothing found, and the processor time of all.
"""

import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import affected  # noqa: E402
import harness  # noqa: E402
import rust  # noqa: E402
from draw import COUNTS, FAST_LIBRARY, Fault, alone, drawn, environment, of_suites, options_of, row  # noqa: E402
from run import TREE, copy_tree  # noqa: E402

CHOSEN = Path(TREE, "build/chosen")
# The machine of the suite `verbs` does not see the file of the chosen fault.
LEFT_OUT = {COUNTS, "verbs"}
# The module that a crate with faults has in the copy.
MODULE = f"""//! The fault that happens in this process: the number in a file, 0 without one.

use std::sync::atomic::{{AtomicU32, Ordering::Relaxed}};

const UNREAD: u32 = u32::MAX;
static CHOSEN: AtomicU32 = AtomicU32::new(UNREAD);

#[inline]
pub(crate) fn is(number: u32) -> bool {{
    let chosen = CHOSEN.load(Relaxed);
    number == if chosen == UNREAD {{ read() }} else {{ chosen }}
}}

#[cold]
fn read() -> u32 {{
    let text = std::fs::read_to_string("{CHOSEN}").unwrap_or_default();
    let chosen = text.trim().parse().unwrap_or(0);
    CHOSEN.store(chosen, Relaxed);
    chosen
}}
"""
# What stands before an expression and after it, outside of brackets: && and || do unless the change is one of theirs.
BEFORE = r"[,;] |\w: | ([-+*/%&|^]|<<|>>)?= |=> |\b(if|while|match|in|return|break|else|move) |(^ *|[(,=] |\(|move )\|[^|]*\| "
AFTER = r"[,;]| \{| => "
LOGICAL = r"&& |\|\| ", r" && | \|\| "
# Lines around an expression that begins or ends a line.
LINE_BEFORE, LINE_AFTER = r"(^|[{};,(\[=]|=>|&&|\|\||//.*)$", r"[])}]|&& |\|\| |\{"
OPENING, CLOSING = "([{", ")]}"
# A failed case of a suite, or a failed test of nextest.
FAILED = re.compile(r"\s*(?:FAIL (?!\[)(.*)|(?:FAIL|SIG\w+|ABORT|TIMEOUT|LEAK-FAIL) \[.*?\] +(?:\(.*?\) +)?(.*))$")


def extended(text: str, depth: int, brackets: tuple[str, str], boundary) -> int | None:
    """How far an expression goes on in the text: to the boundary, or to the end."""
    inward, outward = brackets
    for at, letter in enumerate(text):
        if depth == 0 and (letter in outward or boundary(at)):
            return at
        depth += (letter in inward) - (letter in outward)
    return len(text) if depth == 0 else None


def switched(lines: list[str], fault: Fault, number: int) -> str | None:
    """The fault's line with both expressions, where it has such."""
    begin = len(os.path.commonprefix([fault.old, fault.new]))
    after = fault.old[len(fault.old) - len(os.path.commonprefix([fault.old[begin:][::-1], fault.new[begin:][::-1]])):]
    before, changed = fault.old[:begin], fault.old[begin:len(fault.old) - len(after)]
    # Brackets of the changed part that close and open outside of it.
    closes = opens = 0
    for letter in changed:
        opens += letter in OPENING
        if letter in CLOSING:
            closes, opens = closes + (opens == 0), max(opens - 1, 0)
    ends, starts = (re.compile(text if re.search(r"&&|\|\|", changed) else f"{text}|{logical}") for text, logical in zip((AFTER, BEFORE), LOGICAL[::-1]))
    starts = re.compile(f"(?:{starts.pattern})$")
    left = extended(before[::-1], closes, (CLOSING, OPENING), lambda at: starts.search(before[:len(before) - at]))
    right = extended(after, opens, (OPENING, CLOSING), lambda at: ends.match(after, at))
    if left is None or right is None:
        return None
    first, last = len(before) - left, len(fault.old) - len(after) + right
    first += len(fault.old[first:]) - len(fault.old[first:].lstrip())
    head, tail = fault.old[:first], fault.old[last:]
    old, new = fault.old[first:last], fault.new[first:len(fault.new) - len(tail)]
    whole = [line.strip() for line in lines]
    if not head.strip() and not re.search(LINE_BEFORE, whole[fault.line - 1] if fault.line else ""):
        return None
    if not tail and not re.match(LINE_AFTER, next(filter(None, whole[fault.line + 1:]), "}")):
        return None
    if tail.startswith(" =>") and not re.search(r"\bif ", head):
        return None
    if not new.strip():
        return f"{head}if !crate::planted::is({number}) {{ {old}; }}{tail}" if not head.strip() and tail == ";" else None
    return f"{head}(if crate::planted::is({number}) {{ {new} }} else {{ {old} }}){tail}"


def generators() -> tuple[str, ...]:
    """Folders of crates that run while others are built."""
    manifests = [tomllib.loads(file.read_text()) for file in harness.ROOT.glob("crates/*/*/Cargo.toml")]
    names = {name for manifest in manifests for name in manifest.get("build-dependencies", {})}
    return tuple(str(folder) for folder in harness.ROOT.glob("crates/*/*") if folder.name in names)


class Schemata:
    """The copy of the tree, and the faults in it."""

    def __init__(self, series: list[list[Path]], chance: random.Random):
        self.series, self.chance = series, chance
        self.faults: list[Fault | None] = [None] * len(series)
        self.lines: dict[int, str] = {}

    def draw(self) -> None:
        """Draws the faults that are missing."""
        generated = generators()
        for at, files in enumerate(self.series):
            files = [file for file in files if not str(file).startswith(generated)]
            while self.faults[at] is None:
                fault = drawn(self.chance, files)
                line = switched(Path(harness.ROOT, fault.name).read_text().split("\n"), fault, at + 1)
                if line and not any(other and (other.name, other.line) == (fault.name, fault.line) for other in self.faults):
                    self.faults[at], self.lines[at] = fault, line

    def plant(self) -> None:
        texts = {fault.name: Path(harness.ROOT, fault.name).read_text().split("\n") for fault in self.faults}
        for at, fault in enumerate(self.faults):
            texts[fault.name][fault.line] = self.lines[at]
        for folder in {Path(*Path(name).parts[:4]) for name in texts}:
            root = next(root for root in (f"{folder}/lib.rs", f"{folder}/main.rs") if Path(harness.ROOT, root).exists())
            texts.setdefault(root, Path(harness.ROOT, root).read_text().split("\n")).append("mod planted;\n")
            texts[f"{folder}/planted.rs"] = [MODULE]
        copy_tree({name: "\n".join(lines) for name, lines in texts.items()})

    def drop(self) -> int:
        """Drops the faults that do not compile, and says how many."""
        command = ["cargo", "check", "--workspace", "--quiet", "--keep-going", "--message-format=json"]
        checked = subprocess.run(command, cwd=TREE, env=environment(), capture_output=True, text=True)
        messages = [json.loads(line).get("message") for line in checked.stdout.splitlines() if line.startswith("{")]
        dropped = set()
        for message in (message for message in messages if message and message.get("level") == "error" and message["spans"]):
            places = {(span["file_name"], line - 1) for span in message["spans"] for line in range(span["line_start"], span["line_end"] + 1)}
            at_line = {at for at, fault in enumerate(self.faults) if (fault.name, fault.line) in places}
            # An error that a fault has elsewhere, as of a type that is inferred: all of the file.
            dropped |= at_line or {at for at, fault in enumerate(self.faults) if fault.name in {name for name, _ in places}}
        if checked.returncode != 0 and not dropped:
            sys.exit(f"the copy does not compile, and no fault is the reason:\n{checked.stderr}{checked.stdout[-3000:]}")
        for at in dropped:
            self.faults[at] = None
        return len(dropped)

    def build(self) -> None:
        """Draws, plants and compiles until all compile."""
        self.draw()
        self.plant()
        while dropped := self.drop():
            print(f"{dropped} do not compile and are drawn again", flush=True)
            self.draw()
            self.plant()
        for command in ["make", "--no-print-directory", "-j2", "tree"], ["cargo", "test", "--workspace", "--no-run", "--quiet"]:
            built = subprocess.run(command, cwd=TREE, env=environment() | FAST_LIBRARY, capture_output=True, text=True)
            if built.returncode != 0:
                sys.exit(f"the copy cannot be built:\n{built.stderr[-3000:]}")


class Runs:
    """Runs of tests and suites in the copy."""

    def __init__(self, seconds: float):
        self.seconds, self.nextest = seconds, rust.nextest_program()
        self.passes_without: dict[str, bool] = {}

    def failure(self, command: list[str], chosen: int) -> str | None:
        """The first test that fails, or "undecided" when time is up."""
        CHOSEN.parent.mkdir(exist_ok=True)
        CHOSEN.write_text(str(chosen))
        command = ["nice", "-n", "19", *(word.replace(str(harness.ROOT), TREE) for word in command)]
        process = subprocess.Popen(command, cwd=TREE, env=environment() | FAST_LIBRARY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace", start_new_session=True)
        late, failed = threading.Event(), None
        timer = threading.Timer(self.seconds, lambda: (late.set(), self.end(process)))
        timer.daemon = True
        timer.start()
        try:
            for line in process.stdout:
                if failed is None and (found := FAILED.match(line)):
                    failed = found[1] or found[2]
                    threading.Thread(target=self.end, args=[process]).start()
            status = process.wait()
        finally:
            timer.cancel()
            self.end(process)
        if failed or late.is_set():
            return failed or "undecided"
        return None if status in (0, harness.NOT_RUN) else f"status {status}"

    @staticmethod
    def end(process: subprocess.Popen) -> None:
        """Ends a run as a user does, so that it takes away what it has made."""
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            pass
        harness.kill_session(process.pid)

    def finds(self, fault: Fault, number: int) -> str | None:
        """The test or suite that finds the fault, and the case."""
        undecided = None
        for name, command in affected.commands_of([fault.name], self.nextest, is_built=True):
            if name.removeprefix("suite ") in LEFT_OUT or not self.passes_without.get(name, True):
                continue
            failed = self.failure(command, number)
            if failed and name not in self.passes_without:
                why = self.failure(command, 0)
                self.passes_without[name] = why is None
                if why:
                    print(f"    {name} fails with no fault chosen, and finds nothing: {why}", flush=True)
            if failed == "undecided":
                undecided = failed
            elif failed and self.passes_without[name]:
                return f"{name}: {failed}"
        return undecided


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--only", type=int, action="append", metavar="NUMBER", help="try only this fault of the series, in the order given")
    options = options_of(parser, 1800)
    # A shell that starts this in the background has it ignored; the runs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chance, suites = random.Random(options.seed), of_suites(options.files)
    last = [suites.pop(name) for name in LEFT_OUT & set(suites)]
    series = list(suites.values())
    schemata = Schemata(series + [options.files] * (options.count - len(last) - len(series)), chance)
    if options.list:
        schemata.draw()
        print(*schemata.faults, sep="\n")
        return 0
    schemata.build()
    print(f"{len(schemata.faults)} faults are built: {processor_seconds():.0f} s of processor time", flush=True)
    runs, missed = Runs(options.seconds), []
    names = [*suites, *["any"] * len(schemata.series)]
    for number in options.only or range(1, len(schemata.faults) + 1):
        if number <= len(schemata.faults):
            began, fault = time.monotonic(), schemata.faults[number - 1]
            found = runs.finds(fault, number)
            row(number, f"{names[number - 1]} | {found or 'NOT FOUND'}", began, fault)
            missed += [] if found else [fault]
    copy_tree()
    for number, files in enumerate(last, len(schemata.faults) + 1):
        if not options.only or number in options.only:
            began = time.monotonic()
            fault, found = alone(chance, files, options.seconds)
            row(number, found, began, fault)
            missed += [] if found else [fault]
    print(*(f"NOT FOUND: {fault}" for fault in missed), sep="\n")
    print(f"{len(missed)} of {len(options.only or schemata.faults + last)} faults were not found: {processor_seconds():.0f} s of processor time")
    return min(len(missed), 1)


def processor_seconds() -> float:
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


if __name__ == "__main__":
    sys.exit(main())
