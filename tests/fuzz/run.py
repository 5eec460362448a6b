#!/usr/bin/env python3
"""Runs the targets of crate `fuzzed` under libFuzzer, each for some time.

    tests/fuzz/run.py [--seconds 60] [--runs N] [--only NAME,NAME...] [--fast] [--coverage] [--keep]

It begins with the inputs of fuzz/corpus, and goes on with those of earlier runs in build/fuzz. An input that breaks a promise is
printed, and fails the suite: its line belongs into the corpus. `--runs` ends each target after so many inputs, and without `--seconds`
only then. No input may allocate more than ALLOCATION allows in one piece. `--fast` leaves out AddressSanitizer: most parsers are safe
code, and get through several times as many inputs. `--coverage` prints the share of the lines of each parser's files that the
inputs reach, and the functions that they do not enter (it needs the toolchain's llvm-tools). `--keep` writes a small set of inputs with
the same reach back to fuzz/corpus. It needs a nightly toolchain, which it installs by rustup, and a C++ compiler. Status 3: it cannot run here, and the line before says why.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import Tally  # noqa: E402

CARGO = shlex.split(os.environ.get("CARGO", "cargo"))
TOOLCHAIN = os.environ.get("FUZZ_TOOLCHAIN", "nightly")
FOLDER, CORPUS, WORK = harness.ROOT / "fuzz", harness.ROOT / "fuzz" / "corpus", harness.ROOT / "build" / "fuzz"
# Counters at the edges of the code, and comparisons.
FLAGS = ("-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters "
         "-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1")
# Every access to memory is checked.
CHECKED = " -Zsanitizer=address"
# The longest input in bytes, and that of the targets in which each byte is dear: hashes, and lists that a few bytes expand.
LENGTH, SHORTER = 4096, {"allocations": 512, "calls": 512, "datagrams": 512}
# The longest time of an input in seconds, and the most memory of the process in MiB.
LIMITS = ["-timeout=120", "-rss_limit_mb=1024"]
# The most memory of one allocation in MiB, and the targets in which good inputs ask for more: a list may have 65,536 hosts.
ALLOCATION, LARGE = 1, {"allocations": 8}
# The longest input that is kept in the repository, in bytes.
KEPT_LEN = 300
# A week, in seconds: a target ends by itself.
NO_LIMIT = 7 * 24 * 3600
# The files of each target's parsers, of which the coverage counts.
PARSERS = {
    "agents": [f"crates/job/launch/src/agent/{name}.rs" for name in ("frame", "link", "order")],
    "allocations": [f"crates/job/launch/src/allocation/{name}.rs" for name in ("flux", "hostlist", "lists", "mod", "operator", "slurm")],
    "calls": ["crates/devices/tcp/src/calls.rs", "crates/devices/tcp/src/pair.rs"],
    "cards": ["crates/devices/host_node/src/card.rs"],
    "control": ["crates/job/pmi/src/protocol.rs", "crates/job/pmi/src/status.rs", "crates/job/pmi/src/hosts.rs"],
    "costs": ["crates/base/cost_cache/src/lines.rs"],
    "datagrams": ["crates/devices/host_node/src/datagram.rs", "crates/devices/host_node/src/reliable_datagram.rs", "crates/devices/host_node/src/serials.rs",
                  "crates/base/secret/src/codes.rs"],
    "fabrics": ["crates/machines/fabric/src/catalogue/read.rs", "crates/machines/fabric/src/catalogue/resolve.rs", "crates/machines/fabric/src/catalogue/sheet.rs",
                "crates/machines/fabric/src/catalogue/slips.rs"],
    "faults": ["crates/machines/model/src/fault_file.rs", "crates/machines/model/src/port_faults.rs"],
    "frames": ["crates/devices/tcp/src/frame/execution.rs", "crates/devices/tcp/src/frame/header.rs", "crates/devices/tcp/src/frame/machine.rs",
               "crates/devices/tcp/src/frame/outgoing.rs", "crates/devices/tcp/src/frame/requests.rs", "crates/devices/tcp/src/regions.rs"],
    "handshakes": ["crates/library/channel/src/rdma/fence.rs", "crates/library/channel/src/rdma/handshake.rs"],
    "hello": ["crates/base/secret/src/hello.rs"],
    "hosts": ["crates/job/launch/src/host_list.rs", "crates/job/launch/src/hosts.rs"],
    "knobs": ["crates/base/knobs/src/algorithms.rs", "crates/base/knobs/src/error.rs", "crates/base/knobs/src/mv2.rs", "crates/base/knobs/src/nearest.rs",
              "crates/base/knobs/src/parse.rs", "crates/base/knobs/src/rails.rs", "crates/base/knobs/src/value.rs"],
    "objects": [f"crates/job/launch/src/needs/{name}.rs" for name in ("cache", "elf", "script")],
    "packets": ["crates/library/mpi/src/p2p/machine/handlers.rs", "crates/library/mpi/src/packet/announcements.rs", "crates/library/mpi/src/packet/bodies.rs",
                "crates/library/mpi/src/packet/codec.rs", "crates/library/mpi/src/packet/heads.rs", "crates/library/mpi/src/packet/kinds.rs"],
    "pmi_messages": ["crates/job/pmi/src/foreign/message.rs", "crates/job/pmi/src/foreign/pmi1.rs", "crates/job/pmi/src/foreign/pmi2.rs"],
    "pmi_values": ["crates/job/pmi/src/foreign/mapping.rs", "crates/job/pmi/src/foreign/values.rs"],
    "rings": ["crates/library/channel/src/ring/mod.rs", "crates/library/channel/src/ring/slot.rs", "crates/library/channel/src/shm/shared_ring.rs"],
    "scenes": ["crates/machines/model/src/config.rs", "crates/machines/fabric/src/system.rs"],
    "slots": ["crates/library/channel/src/rdma/inbound.rs", "crates/library/channel/src/rdma/layout.rs",
              "crates/library/channel/src/rdma/messages.rs"],
    "windows": ["crates/base/datatype/src/wire.rs", "crates/library/mpi/src/window/machine/messages.rs", "crates/library/mpi/src/window/machine/target.rs"],
}


def why_not() -> str:
    """Installs what is missing; the reason why the fuzzer cannot run here, or nothing."""
    if shutil.which("c++") is None and subprocess.run([harness.ROOT / "scripts/needs.sh", "c++"], check=False).returncode != 0:
        return "there is no C++ compiler"
    if subprocess.run(["cargo", f"+{TOOLCHAIN}", "--version"], capture_output=True, check=False).returncode == 0:
        return ""
    if shutil.which("rustup") is None:
        return f"there is no toolchain {TOOLCHAIN}, and no rustup that could install it"
    done = subprocess.run(["rustup", "toolchain", "install", TOOLCHAIN, "--profile", "minimal"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"rustup cannot install {TOOLCHAIN}: {(done.stderr.splitlines() or ['no words'])[-1]}"


def host() -> str:
    said = subprocess.run(["rustc", f"+{TOOLCHAIN}", "-vV"], capture_output=True, text=True, check=True).stdout
    return re.search(r"host: (\S+)", said)[1]


def built(flags: str, folder: str) -> Path:
    """The fuzzer, compiled with these flags. Build scripts are not: they are for another target than the one that is named."""
    target, triple = WORK / folder, host()
    command = [*CARGO, f"+{TOOLCHAIN}", "build", "--release", "--quiet", "--manifest-path", FOLDER / "Cargo.toml", "--target", triple,
               "--target-dir", target]
    done = subprocess.run(list(map(str, command)), cwd=FOLDER, env=os.environ | {"RUSTFLAGS": flags}, check=False)
    if done.returncode != 0:
        raise harness.Problem("the fuzzer does not compile")
    return target / triple / "release" / "fuzz"


def inputs(name: str) -> Path:
    """The folder of a target's inputs, with those of the repository."""
    folder = WORK / "inputs" / name
    folder.mkdir(parents=True, exist_ok=True)
    for at, line in enumerate((CORPUS / name).read_text().splitlines()):
        (folder / f"kept-{at}").write_bytes(bytes.fromhex(line))
    return folder


def run(program: Path, name: str, *words, limit: float | None, env: dict | None = None) -> subprocess.CompletedProcess:
    command = [program, *words]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace", cwd=WORK, timeout=limit, check=False,
                          env=os.environ | {"FUZZ_TARGET": name} | (env or {}))


def fuzz(program: Path, name: str, seconds: int, runs: int) -> str:
    """Runs a target for some time, or without a time for a number of inputs. The result is a note with its figures; a broken promise is a
    `Problem`."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=WORK) as found:
        done = run(program, name, f"-max_total_time={seconds}", f"-runs={runs}", f"-artifact_prefix={found}/", "-print_final_stats=1",
                   f"-max_len={SHORTER.get(name, LENGTH)}", *LIMITS, inputs(name), limit=2 * seconds + 120 if seconds else None,
                   env={"FUZZ_ALLOCATION": str(LARGE.get(name, ALLOCATION) << 20)})
        crashes = [path.read_bytes().hex() for path in Path(found).iterdir()]
    if done.returncode != 0:
        kept = "".join(f"\nthe input, for fuzz/corpus/{name}: {crash}" for crash in crashes)
        words = [line for line in done.stderr.splitlines() if not line.startswith(("#", "INFO:", "    #"))]
        raise harness.Problem(f"a promise is broken{kept}" + harness.output("\n".join(words)))
    executions = re.search(r"stat::number_of_executed_units: (\d+)", done.stderr)
    edges = re.findall(r"cov: (\d+)", done.stderr)
    rate = int(executions[1]) / (time.monotonic() - began)
    return f"{int(executions[1]):,} executions, {rate:,.0f} a second, {edges[-1]} edges, {len(list(inputs(name).iterdir()))} inputs"


def keep(program: Path, name: str) -> int:
    """Writes a small set of short inputs that reaches the same code to the repository; returns their number."""
    with tempfile.TemporaryDirectory(dir=WORK) as small:
        run(program, name, "-set_cover_merge=1", f"-max_len={KEPT_LEN}", small, inputs(name), limit=600)
        lines = sorted((path.read_bytes().hex() for path in Path(small).iterdir()), key=lambda line: (len(line), line))
    (CORPUS / name).write_text("".join(f"{line}\n" for line in lines))
    return len(lines)


def coverage(names: list) -> str:
    """A table: the share of the lines of each parser's files that the inputs reach, once of all and once of the functions that they enter,
    and the names of those that they do not enter."""
    sysroot = subprocess.run(["rustc", f"+{TOOLCHAIN}", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    tools = Path(sysroot) / "lib/rustlib" / host() / "bin"
    if not (tools / "llvm-cov").exists():
        subprocess.run(["rustup", "component", "add", "llvm-tools", "--toolchain", TOOLCHAIN], capture_output=True, check=False)
    program = built("-Cinstrument-coverage", "coverage")
    table = [f"{'target':<12} {'file':<52} {'lines':>11} {'':>5} {'entered':>11}"]
    for name in names:
        raw, data = WORK / f"{name}.profraw", WORK / f"{name}.profdata"
        raw.unlink(missing_ok=True)
        run(program, name, "-runs=0", inputs(name), limit=600, env={"LLVM_PROFILE_FILE": str(raw)})
        subprocess.run([tools / "llvm-profdata", "merge", "-sparse", raw, "-o", data], check=True)
        for path in PARSERS[name]:
            words = ["-instr-profile", data, program, "--sources", harness.ROOT / path]
            shown = subprocess.run([tools / "llvm-cov", "show", "-show-instantiations=false", *words], capture_output=True, text=True, check=True).stdout
            known = subprocess.run([tools / "llvm-cov", "export", *words], capture_output=True, text=True, check=True).stdout
            table.append(f"{name:<12} {path:<52} " + reached(shown, json.loads(known)["data"][0]["functions"], (harness.ROOT / path)))
    return "\n".join(table)


def reached(shown: str, functions: list, path: Path) -> str:
    """The figures of one file. `shown`: its lines, each with the number of its runs, if it has code."""
    lines = {int(number): runs != "0" for number, runs in re.findall(r"^ +(\d+)\| +([\d.]+\w?)\|", shown, re.M)}
    ranges = {}
    for function in functions:
        if Path(function["filenames"][0]) == path:
            begin, end = min(region[0] for region in function["regions"]), max(region[2] for region in function["regions"])
            ranges[begin, end] = ranges.get((begin, end), False) or function["count"] > 0
    text = path.read_text().splitlines()
    named = {at: re.search(r"\bfn (\w+)", " ".join(text[at[0] - 1:at[0] + 2])) for at in ranges}
    left = {at: found[1] for at, found in named.items() if found and not ranges[at]}
    entered = {line: is_run for line, is_run in lines.items() if not any(begin <= line <= end for begin, end in left)}
    share = lambda part: f"{sum(part.values()):>4} of {len(part):>4} {100 * sum(part.values()) / max(1, len(part)):>5.1f}"
    return f"{share(lines)} {share(entered)} %" + (f"  not {', '.join(left.values())}" if left else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, help="time of each target (60 without --runs)")
    parser.add_argument("--runs", type=int, default=-1, metavar="N", help="inputs of each target")
    parser.add_argument("--only", metavar="NAME,NAME...", help="these targets")
    parser.add_argument("--fast", action="store_true", help="without checks of the accesses to memory")
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    seconds = options.seconds if options.seconds is not None else 60 if options.runs < 0 else 0
    known = sorted(path.name for path in CORPUS.iterdir())
    names = options.only.split(",") if options.only else known
    if unknown := set(names) - set(known):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if reason := why_not():
        return harness.not_run("fuzz", reason)
    WORK.mkdir(parents=True, exist_ok=True)
    tally, began = Tally(), time.monotonic()
    try:
        program = built(FLAGS, "fast") if options.fast else built(FLAGS + CHECKED, "target")
    except harness.Problem as why:
        return harness.not_run("fuzz", str(why))
    cases = [harness.Case(name, seconds=NO_LIMIT, run=lambda _, name=name: fuzz(program, name, seconds, options.runs)) for name in names]
    tally.merge(harness.run_cases(cases))
    if options.keep and not tally.failed:
        for name in names:
            print(f"fuzz/corpus/{name}: {keep(program, name)} inputs")
    if options.coverage:
        print(coverage(names))
    return harness.close("fuzz", tally, began)


if __name__ == "__main__":
    sys.exit(main())
