#!/usr/bin/env python3
"""Builds the kernels of examples/kernels with a prefix's mpicc, runs them, and has them verify their results.

    tests/kernels/run.py [--prefix build] [--long] [--only TEXT] [--list]

Class S of each kernel of the NPB and a small system of HPL run over shared memory and on a modelled machine. Replays of their traces, of those of
the other examples and of calls.c, a program with calls of every kind, take the time of the recorded run. `--long` adds classes W and A, and systems of order 2,000 and 8,000. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

SOURCES = harness.ROOT / "examples" / "kernels"
NPB = ["cg", "is", "ft", "mg", "lu"]
FABRIC = "qdr"
MODELLED = ("--fabric", FABRIC)
WHERE = {"shared memory": (), f"on {FABRIC}": MODELLED}
# A machine whose storage takes time.
STORED = "stored.toml"
STORED_MACHINE = """[system.stored]
from = "qdr"
source = "assumed: a small parallel file system"
storage = { bandwidth = "4 GB/s", latency = "200 us" }
"""
SKELETON = ["500", "32", "2", "2", "--skeleton"]
# Pairs of ranks that exchange more than this belong to one row or column of HPL's grid.
MANY_BYTES = 120_000
# Time limit of a run in seconds, and of a long one.
SECONDS, LONG = 60, 600


def folder(prefix: Path) -> Path:
    made = prefix / "tests" / "kernels"
    made.mkdir(parents=True, exist_ok=True)
    return made


def compile_kernel(prefix: Path, name: str, target: str, *options: str) -> None:
    command = [prefix / "bin/mpicc", "-std=c11", "-O3", "-Wall", "-Wextra", "-Werror", *options, "-o", folder(prefix) / target,
               SOURCES / f"{name}.c", "-lm"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} does not compile: {done.stdout}{done.stderr}")


def compile_all(prefix: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: compile_kernel(prefix, name, name), [*NPB, "hpl"]))
    compile_kernel(prefix, "cg", "cg-other-matrix", "-DRANDOM_SEED=UINT64_C(314159267)")
    for other in ("../heat", "../pi", "../snapshots", "../../tests/kernels/calls"):
        compile_kernel(prefix, other, Path(other).name)
    (folder(prefix) / STORED).write_text(STORED_MACHINE)


def ended(ran: harness.Outcome, code: int, out: str, err: str = "") -> re.Match:
    """Checks the exit status and both outputs against patterns; returns what matched standard output."""
    found = re.search(out, ran.out, re.MULTILINE)
    if ran.code != code or not found or not re.search(err, ran.err):
        raise Problem(f"exit status {ran.code}, not {code}, or no {out!r} or {err!r}" + harness.output(ran.out + ran.err))
    return found


def verified(words: list[str], ranks: int, options: tuple, seconds: float):
    def test(prefix: Path) -> str:
        ran = harness.launch(prefix, ranks, [folder(prefix) / words[0], *words[1:]], options=options, seconds=seconds)
        ended(ran, 0, r"^VERIFICATION SUCCESSFUL$")
        return ended(ran, 0, r"ranks: (.*)$")[1]
    return test


def kernel(words: list[str], ranks: int, where: str, short: bool) -> Case:
    seconds = SECONDS if short else LONG
    return Case(f"{' '.join(words)} -n {ranks}, {where}", verified(words, ranks, WHERE[where], seconds), short, seconds + 10)


def wrong_result(prefix: Path) -> None:
    ran = harness.launch(prefix, 2, [folder(prefix) / "cg-other-matrix"], seconds=SECONDS)
    ended(ran, 1, r"WRONG$[\s\S]*^VERIFICATION FAILED$")


def refusal(words: list[str], ranks: int, says: str, options: tuple = ()):
    def test(prefix: Path) -> None:
        ended(harness.launch(prefix, ranks, [folder(prefix) / words[0], *words[1:]], options=options, seconds=SECONDS), 2, "", says)
    return test


def skeleton_run(prefix: Path, gflops: str) -> harness.Outcome:
    command = ["./hpl", *SKELETON, "--gflops", gflops]
    ran = harness.launch(prefix, 4, command, options=MODELLED, seconds=SECONDS, cwd=folder(prefix))
    ended(ran, 0, "^HPL skeleton")
    return ran


def skeleton_messages(prefix: Path) -> str:
    """The skeleton sends the bytes between each two ranks that the solution sends, but for other pivots and the residual's test."""
    matrices = []
    for options in ((), ("--skeleton",)):
        summary = folder(prefix) / "hpl-summary.json"
        command = [folder(prefix) / "hpl", "600", "32", "2", "3", *options]
        ended(harness.launch(prefix, 6, command, options=(*MODELLED, "--summary", f"json={summary}"), seconds=SECONDS), 0, "^HPL")
        rows = json.loads(summary.read_text())["matrix"]
        matrices.append({(sender, receiver): size for sender, receiver, _, size in rows if size > MANY_BYTES})
    whole, bare = matrices
    off = {pair: abs(bare.get(pair, 0) / whole[pair] - 1) for pair in whole}
    if not whole or whole.keys() != bare.keys() or max(off.values()) > 0.1:
        raise Problem(f"bytes by pair of ranks:\n{whole}\nwithout computing:\n{bare}")
    return f"{len(whole)} pairs of ranks, at most {max(off.values()):.1%} off"


def seconds_of(ran: harness.Outcome) -> float:
    return float(ended(ran, 0, r"ranks: ([0-9.]+) s")[1])


def skeleton_time(prefix: Path) -> str:
    """With computing a thousand times slower, the time is that of computing; the same rates give the same time."""
    times = [seconds_of(skeleton_run(prefix, rate)) for rate in ("10", "10", "0.01")]
    operations = 500 ** 3 * 2 / 3
    least, most = operations / 4 / 0.01e9, operations / 0.01e9
    if times[0] != times[1] or not times[0] < times[2] or not least < times[2] < most:
        raise Problem(f"seconds {times}; the last must be within {least} and {most}, the others equal and less")
    return f"{times[0]} s at 10 Gflop/s a rank, {times[2]} s at 0.01"


def summary_of(prefix: Path, ranks: int, command: list, *options) -> dict:
    """The summary of a run on a modelled machine."""
    file = folder(prefix) / "summary.json"
    ran = harness.launch(prefix, ranks, command, options=(*options, "--summary", f"json={file}"), seconds=SECONDS, cwd=folder(prefix))
    ended(ran, 0, "")
    return json.loads(file.read_text())


def replayed(words: list[str], ranks: int, options: tuple, compute: tuple):
    """The trace of a run, replayed without the program, takes the time of the run to the picosecond, in the same calls."""
    def test(prefix: Path) -> str:
        trace = folder(prefix) / f"{'-'.join(words)}-{ranks}-{len(options)}-{len(compute)}.trace"
        direct = summary_of(prefix, ranks, [folder(prefix) / words[0], *words[1:]], *options, *compute, "--record", str(trace))
        again = summary_of(prefix, ranks, [trace], *options)
        for name in ("virtual_s", "procedures", "messages", "matrix"):
            if direct[name] != again[name] or not direct[name]:
                raise Problem(f"{name}: {direct[name]} in the run, {again[name]} in the replay")
        return f"{direct['virtual_s']} s, {trace.stat().st_size} bytes"
    return test


# The groups of calls of calls.c.
CALLS = ["bottom", "generalized", "dynamic", "windows", "types"]


def traced() -> list[Case]:
    near, measured = (*MODELLED, "--ppn", "2"), ("--compute", "measured")
    runs = [([name, "S"], 4, options, compute) for name in NPB for options, compute in ((MODELLED, ()), (near, measured))]
    runs += [(["hpl", "500", "32", "2", "2"], 4, MODELLED, ()), (["heat", "64", "20"], 8, ("--fabric", "edr"), measured)]
    runs += [(["pi"], 4, near, measured), (["hpl", *SKELETON, "--gflops", "10"], 4, MODELLED, ())]
    runs += [(["snapshots", "96", "4", f"{name}.data", f"{name}.log"], ranks, options, compute) for name, ranks, options, compute in (
        ("far", 4, MODELLED, ()), ("near", 6, near, measured), ("stored", 6, ("--fabric", STORED, "--ppn", "3"), ()))]
    runs += [(["calls", group], 4, options, compute) for group in CALLS for options, compute in ((MODELLED, ()), (near, measured))]
    return [Case(f"{' '.join(words)} -n {ranks} {' '.join((*options, *compute))}: its trace takes its time",
                 replayed(words, ranks, options, compute)) for words, ranks, options, compute in runs]


def free_sources(prefix: Path) -> str:
    """A comparison of a trace with receives from any source has the times with the sources that come first: on the machine of the recorded
    run that of the run, which the replay with known sources does not take, because a receive that knows its sender may tell it that it is
    ready."""
    trace = folder(prefix) / "free-sources.trace"
    direct = summary_of(prefix, 4, [folder(prefix) / "calls", "persistent"], *MODELLED, "--record", str(trace))
    direct = direct["virtual_s"]
    ran = harness.run([str(prefix / "bin/fishplate"), "compare", "--json", "--fabrics", f"{FABRIC},edr", str(trace)], seconds=LONG)
    ended(ran, 0, "^{")
    found = json.loads(ran.out)
    times = [(row["seconds"], row["seconds_with_free_sources"]) for row in found["rows"]]
    if times[0][1] != direct or times[0][0] == direct or not all(0.5 < free / usual < 2 for usual, free in times):
        raise Problem(f"times, and those with the sources that come first: {times}; the recorded run took {direct} s")
    return f"{times}: {found['advice']['certainty']}"


def in_a_study(prefix: Path) -> str:
    """`study edr` compiles the skeleton from its own copy of the sources, and judges both statements about HPL."""
    ran = harness.run([str(prefix / "bin/fishplate"), "study", "edr", "--hpl", "2000", "--json"], seconds=LONG)
    ended(ran, 0, "^{")
    found = {line.get("claim"): line for line in map(json.loads, ran.out.splitlines())}
    gain, share = found["B21"].get("predicted", 0), found["B22"].get("predicted", 0)
    # A system of order 2,000 is short of work: the network matters, and most of the time is communication. No program gains more
    # than the bandwidth of both directions does (claim B20).
    most = 100 * (found["B20"]["predicted"] - 1)
    if not (0 < gain < most and 0 < share < 50) or found["B22"]["verdict"] != "differs":
        raise Problem(f"B21: {found['B21']}\nB22: {found['B22']}{harness.output(ran.err)}")
    return f"EDR is {gain} % faster, {share} % of the time is computing"


def tests() -> list[Case]:
    small = [kernel([name, "S"], ranks, where, True) for name in NPB for ranks in (2, 4) for where in WHERE]
    small += [kernel(["hpl", "500", "32", "2", "2"], 4, where, True) for where in WHERE]
    small += [kernel(["hpl", "77", "8", "3", "2"], 6, "shared memory", True)]
    others = [
        Case("cg of another matrix fails", wrong_result),
        Case("cg on 3 ranks is refused", refusal(["cg", "S"], 3, "3 ranks: .* power of two")),
        Case("an unknown class is refused", refusal(["mg", "Q"], 2, "one letter of SWAB")),
        Case("hpl on a wrong grid is refused", refusal(["hpl", "500", "32", "2", "2"], 2, "2 x 2 needs as many ranks")),
        *[Case(f"{option} without a trace is refused", refusal(["pi"], 2, f"{option} replays a trace, not a program", (*MODELLED, option)))
          for option in ("--fast", "--free-sources")],
        Case("hpl's skeleton: messages", skeleton_messages),
        Case("hpl's skeleton: time", skeleton_time),
        Case("the sources of receives in its trace are compared", free_sources, True, LONG + 10),
    ]
    long = [kernel([name, "W"], ranks, where, False) for name in NPB for ranks in (2, 4) for where in WHERE]
    long += [kernel([name, "A"], 2, "shared memory", False) for name in NPB]
    long += [Case("hpl's skeleton: in a study", in_a_study, False, LONG + 10)]
    long += [kernel(["hpl", *words], 4, "shared memory", False) for words in (["2000", "96", "2", "2"], ["8000", "128", "2", "2"])]
    return small + others + traced() + long


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--long", action="store_true", help="larger classes and systems too")
    options = parser.parse_args()
    options.short = not options.long
    if options.list:
        print("\n".join(case.name if case.short else f"{case.name} (only in --long)" for case in tests()))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    compile_all(prefix)
    return harness.run_suite("kernels", [case for case in tests() if case.wanted(options)], prefix)


if __name__ == "__main__":
    sys.exit(main())
