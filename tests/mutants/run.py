#!/usr/bin/env python3
"""Mutants of failover: each rule of several rails is removed in turn, and some test must fail.

    tests/mutants/run.py [WORD...]     the mutants whose name contains one of the words; all without one
    tests/mutants/run.py --check       only checks that every mutation still fits the source

A mutant is a copy of the tree with one text replaced. Tests run on it until one notices it: `strict`, the channel on the
strict device (crates/library/channel/src/rdma/failover_tests.rs); `unit`, the tests of single modules, for rules against messages
that no tested machine sends, as a fence that comes twice; and `simulate`, MPI programs on modelled machines
(crates/library/mpi/tests/it/simulated_rails.rs), which take the longest. A test that hangs has noticed the mutant too.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TREE = os.path.join(ROOT, "build", "mutants")
RDMA = "crates/library/channel/src/rdma/"

# The arguments that build each test, the tests of that program, and the number of seeds.
STRICT = (["-p", "channel", "--lib"], ["rdma::failover_tests"], int(os.environ.get("STRICT_SEEDS", 200)))
UNIT = (["-p", "channel", "--lib"], [f"rdma::{module}::" for module in ("fence", "lifecycle", "notice", "outbound")], 0)
SIMULATE = (["-p", "mpi", "--test", "it"], ["simulated_rails"], int(os.environ.get("SIMULATE_SEEDS", 200)))
TESTS = {"strict": STRICT, "unit": UNIT, "simulate": SIMULATE}
# The longest time of one test, in seconds.
LONGEST = int(os.environ.get("LONGEST", 400))

# The name, the rule that the mutant lacks, the text, which one file of the folder has once, and its replacement.
MUTANTS = [
    ("reuse-tail", "a slot is reused only when the receiver's tail has passed it",
     "        let free = self.tail.min(self.in_flight.completed());\n        let classes = self.layout.classes().iter().zip(&self.classes).enumerate();",
     "        let free = self.in_flight.completed();\n        let classes = self.layout.classes().iter().zip(&self.classes).enumerate();"),
    ("reuse-copies", "a slot is reused only when every posted copy of it has completed",
     "        let free = self.tail.min(self.in_flight.completed());\n        let classes = self.layout.classes().iter().zip(&self.classes).enumerate();",
     "        let free = self.tail;\n        let classes = self.layout.classes().iter().zip(&self.classes).enumerate();"),
    ("notice-count", "the receiver keeps a set of notices, not a count",
     "        self.arrived = self.arrived.with(word.share);",
     "        self.arrived = self.arrived.with(self.arrived.len());"),
    ("confirmed-parts", "only shares that the peer was notified of are confirmed",
     "            Some((_, shares)) => shares >> share & 1 == 1,",
     "            Some(_) => share < 8,"),
    ("confirmed-whole", "nothing that is confirmed is written again",
     "            None => number.wrapping_sub(self.next_notice) & NOTICE_NUMBERS > NOTICE_NUMBERS / 2,",
     "            None => number > NOTICE_NUMBERS,"),
    ("next-notice", "a notice that is expected after the fence is not confirmed by it",
     "            None => number.wrapping_sub(self.next_notice) & NOTICE_NUMBERS > NOTICE_NUMBERS / 2,",
     "            None => number <= NOTICE_NUMBERS,"),
    ("epoch", "a fence of another life of the link is stale",
     "let is_current = fence.epoch == self.epoch && !is_over;",
     "let is_current = fence.epoch <= self.epoch && !is_over;"),
    ("drained", "a fence leaves only when the queue pairs are drained",
     "link.life.stage() == LifeStage::Draining && link.is_drained(&mut *all.local.node)?",
     "link.life.stage() == LifeStage::Draining"),
    ("last-wqe", "a queue pair with a shared receive queue is drained at Last WQE Reached",
     "        Ok(self.is_drained && node.rail(self.rail).is_drained(self.qp)?)",
     "        Ok(self.is_drained && node.rails() > 0)"),
    ("marker", "a send queue is drained when its last completion has come",
     "        Ok(self.is_drained && node.rail(self.rail).is_drained(self.qp)?)",
     "        Ok(node.rail(self.rail).is_drained(self.qp)?)"),
    ("both-ends", "a replay waits until the peer's end is drained",
     "        let fence = self.fence.take()?;",
     "        let fence = self.fence.take().unwrap_or_default();"),
    ("replay", "what the peer lacks is written again",
     "if sequence > self.tail && usize::from(slots.links[slot]) == link {",
     "if sequence > self.tail + 1 && usize::from(slots.links[slot]) == link {"),
    ("replay-mark", "the flag of a replay has the mark of its own link",
     "        staging.block.store(end - WORD, flag(sequence, link));\n        let info",
     "        let info"),
    ("replay-bytes", "a replay has the bytes of the first write",
     "            SlotContent::Packet => &[staging.slice(rail, end - TRAILER - len..end)][..],",
     "            SlotContent::Packet => &[staging.slice(rail, end - TRAILER - len / 2..end)][..],"),
    ("tail-again", "the fence of each end has its tail",
     "        self.tail = self.tail.max(received.min(self.last));\n", "        let _ = received;\n"),
    ("grants-again", "each end sends its grants again after a fence",
     "self.credits.window.restart(received, own)",
     "self.credits.window.granted()"),
    ("completion-flag", "the flag of a slot on a rail without order says: wait for the completion",
     "        true => completion_flag(sequence),", "        true => sequence,"),
    ("receives-again", "a link that comes back has receives for the packets of a ring",
     "    for _ in 0..receives {\n        link.control", "    for _ in 0..receives * 0 {\n        link.control"),
    ("notices-again", "a link that comes back has receives for the notices that are expected",
     "    transfers.reserve_notices_on(local, endpoint, (peer.rank, index))?;\n",
     "    let _ = (&transfers, local, &endpoint);\n"),
    ("dead-transfers", "no piece is posted on a link that is not live",
     "        if !link.life.is_live() {\n            return Ok(false);\n        }\n        let rails",
     "        if link.index() > 99 {\n            return Ok(false);\n        }\n        let rails"),
    ("dead-packets", "no packet is posted on a link that is not live",
     "            schedules.set_alive(on, false);\n", ""),
    ("known", "numbers that are known already change nothing",
     "            // Consumed already.\n            return true;",
     "            // Consumed already.\n            return false;"),
    ("probe-fence", "a link that fails while it is probed is fenced",
     "        LifeStage::Probing(_) => return begin_draining(peer, index),",
     "        LifeStage::Probing(_) => return Ok(()),"),
    ("fence-at-end", "links are fenced while a job ends",
     "        if self.connections.attention.fencing {", "        if false {"),
    ("any-completion", "any completion of a queue pair reports the packets before it",
     "    endpoint.sender.heard_completed(index, slot);\n    match note {",
     "    if matches!(note, Note::Ring(_) | Note::RingData(_)) {\n"
     "        endpoint.sender.heard_completed(index, slot);\n    }\n    match note {"),
]


def sources(root):
    """The sources in which mutations are, with their texts."""
    return {path: path.read_text() for path in sorted(Path(root, RDMA).rglob("*.rs"))}


def fits():
    """Checks that each mutation replaces exactly one text."""
    wrong, texts = 0, sources(ROOT).values()
    for name, _, old, _ in MUTANTS:
        count = sum(text.count(old) for text in texts)
        if count != 1:
            wrong += 1
            print(f"{name}: its text occurs {count} times in {RDMA}: adapt the mutation to the source")
    return wrong == 0


def copy_tree(planted={}):
    """Makes the copy like the project's tree, but for the texts of files that are planted. Files that are alike already stay, so that only
    what differs is built again; so does build/."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    files = {name for name in files if name and os.path.isfile(os.path.join(ROOT, name))} | set(planted)
    for name in files:
        source, target = Path(ROOT, name), Path(TREE, name)
        content = planted[name].encode() if name in planted else source.read_bytes()
        if not target.exists() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            # With the time of now: the last build may be one of another mutant.
            target.write_bytes(content)
            if source.exists():
                shutil.copymode(source, target)
    for folder, folders, names in os.walk(TREE):
        if folder == TREE and "build" in folders:
            folders.remove("build")
        for left in {os.path.relpath(os.path.join(folder, name), TREE) for name in names} - files:
            os.remove(os.path.join(TREE, left))


def build(arguments):
    """Builds a test of the mutant. Returns its program."""
    # Not the target folder of the project: cargo would take the two trees for one.
    environment = dict(os.environ, CARGO_TARGET_DIR=os.path.join(ROOT, "build", "mutants-target"))
    command = [os.environ.get("CARGO", "cargo"), "test", "--quiet", "--no-run", "--message-format=json"]
    process = subprocess.run(command + arguments, cwd=TREE, env=environment, capture_output=True, text=True)
    messages = [json.loads(line) for line in process.stdout.splitlines()]
    if process.returncode != 0:
        errors = [message["message"]["rendered"] for message in messages if "message" in message]
        sys.exit(f"a mutant does not compile:\n{process.stderr}{''.join(errors)[-3000:]}")
    programs = [message["executable"] for message in messages if message.get("profile", {}).get("test")]
    return next(program for program in programs if program)


def notices(test):
    """Runs a test on the mutant. Returns the test and its seed that failed, or None if all passed."""
    arguments, tests, seeds = TESTS[test]
    command = [build(arguments), *tests, "--nocapture", "--test-threads=1"]
    # The tests that the package has of itself expect its folder.
    folder = glob.glob(os.path.join(TREE, "crates", "*", arguments[1]))[0]
    environment = dict(os.environ, SEEDS=str(seeds), RUST_BACKTRACE="0")
    process = subprocess.run(["timeout", str(LONGEST)] + command, cwd=folder, env=environment,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if process.returncode == 0:
        return None
    # The output of each test, by its name. The first that failed, or the one that hangs, has noticed the mutant.
    parts = re.split(r"^test (\S+) \.\.\. ", process.stdout, flags=re.MULTILINE)
    written = dict(zip(parts[1::2], parts[2::2]))
    failed = re.findall(r"^    (\S+)$", written[parts[-2]].split("\nfailures:\n")[-1], re.MULTILINE)
    name = failed[0] if failed else parts[-2]
    numbers = re.findall(r"^(?:SEED=|seed )(\d+)", written[name], re.MULTILINE)
    seed = f", seed {numbers[-1]}" if numbers else ""
    if process.returncode != 124:
        return name.split("::")[-1] + seed
    # The time was up. A seed that hangs does so alone too; otherwise the seeds so far noticed nothing.
    if numbers:
        environment["SEED"] = numbers[-1]
        alone = subprocess.run(["timeout", str(LONGEST)] + command, cwd=folder, env=environment, capture_output=True)
        if alone.returncode == 0:
            return None
    return f"{name.split('::')[-1]}{seed} (it hangs)"


def main():
    if not fits():
        return 1
    words = sys.argv[1:]
    if words == ["--check"]:
        print(f"{len(MUTANTS)} mutations fit the source")
        return 0
    copy_tree()
    survivors = 0
    for name, rule, old, new in MUTANTS:
        if words and not any(word in name for word in words):
            continue
        begin = time.monotonic()
        path, text = next((path, text) for path, text in sources(TREE).items() if old in text)
        path.write_text(text.replace(old, new))
        try:
            found = None
            for test in TESTS:
                noticed = notices(test)
                if noticed:
                    found = f"{test}: {noticed}"
                    break
        finally:
            path.write_text(text)
        survivors += found is None
        verdict = f"caught by {found}" if found else "NOT CAUGHT"
        print(f"{name:16} {verdict:40} {time.monotonic() - begin:5.0f} s  {rule}", flush=True)
    print(f"{survivors} mutants were not caught")
    return min(survivors, 1)


if __name__ == "__main__":
    sys.exit(main())
