#!/usr/bin/env python3
"""Counts the instructions of the hot paths under callgrind and compares them with tests/counts/expected.

    tests/counts/run.py [--prefix build] [--only TEXT] [--list] [--update]

Times vary from run to run, instruction counts do not. A path that has grown by more than 2 % fails; so does one that has shrunk by
more than 15 %, so that the gain is written down (`--update`). The last line is `N passed, N failed, N skipped`.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402

PATHS = ["send_8", "send_1024", "isend_8", "irecv_8", "waitall_8", "recv_8", "empty_poll", "recv_status_8", "sendrecv_8", "exchange_8",
         "exchange_status_8", "waitall_status_8", "put_8", "get_8", "accumulate_8", "fetch_and_op_8", "compare_and_swap_8"]
# Collectives: each call is counted alone, and the least count is taken, of a call that found its peer there.
TOGETHER = ["barrier", "bcast_8", "bcast_root_8", "allreduce_8"]
# Programs of other ABIs: the name of the ABI, its header, and its library in the prefix. They walk the paths that convert most.
ABIS = {"mpich": (HERE.parent / "robust/mpich_abi", "lib/fishplate/libmpi.so.12"),
        "openmpi": (HERE.parent / "robust/openmpi_abi", "lib/fishplate/libmpi.so.40")}
CONVERTED = ["send_8", "isend_8", "irecv_8", "waitall_8", "recv_8", "recv_status_8", "sendrecv_8", "exchange_8", "exchange_status_8", "waitall_status_8"]
# Forms of Fortran, with the words of mpifort that choose them. Counts are those of this compiler, so they are skipped without it.
FORTRAN = {"mpif": [], "f08": ["-DF08"]}
FORTRAN_COMPILER = "gfortran"
ROUNDS = 100
EXPECTED = HERE / "expected"
# Of the expected count.
LEAST, MOST = 0.85, 1.02


def count(prefix: Path, path: str, program: Path, scratch: Path) -> float:
    out, met = scratch / f"{program.name}.{path}.out", scratch / f"{program.name}.{path}.met"
    each = f"--dump-after={path}" if path in TOGETHER else ""
    counted = (
        f'if [ "$FISHPLATE_RANK" = 0 ]; then exec valgrind --tool=callgrind --toggle-collect={path} {each} '
        f'--callgrind-out-file={out} {program} {met} 2>{scratch}/{program.name}.{path}.log; else exec {program} {met}; fi'
    )
    # Otherwise the launcher would choose by the caches that the ranks' cores happen to share. A peer of a collective that had gone
    # to sleep would cost a wake-up.
    ran = harness.run([str(prefix / "bin/fishplate"), "run", "-n", "2", "sh", "-c", counted], seconds=120,
                      env={"FISHPLATE_CORES": "far"} | ({"FISHPLATE_WAIT": "spin"} if path in TOGETHER else {}))
    if ran.code != 0:
        raise Problem(f"the job ended with {ran.code}{harness.output(ran.out + ran.err)}")
    totals = [re.search(r"^(?:summary|totals): (\d+)", dump.read_text(), re.M) for dump in scratch.glob(f"{out.name}*")]
    # The dump at the program's end has no call.
    counts = [int(total[1]) for total in totals if total and int(total[1]) > 0]
    if not counts:
        raise Problem(f"callgrind counted nothing{harness.output((scratch / f'{path}.log').read_text())}")
    return min(counts) if path in TOGETHER else counts[0] / ROUNDS


def build_fortran(prefix: Path, scratch: Path, forms: list[str]) -> None:
    """Programs whose paths are in Fortran."""
    for form in forms if shutil.which(FORTRAN_COMPILER) else []:
        folder = scratch / form
        folder.mkdir()
        mpifort = [prefix / "bin/mpifort", f"-fc={FORTRAN_COMPILER}", "-O2", "-g", *FORTRAN[form]]
        parts = {"data": ["-DDATA"], "counted": ["-DPATHS=hot_counted", "-DSUFFIX=''"], "before": ["-DPATHS=hot_before", "-DSUFFIX='_before'"]}
        for name, words in parts.items():
            subprocess.run([*mpifort, *words, "-c", HERE / "hot.F90", "-o", f"{name}.o"], cwd=folder, check=True)
        subprocess.run([prefix / "bin/mpicc", "-O2", "-g", "-DFORTRAN", "-c", HERE / "hot.c", "-o", "main.o"], cwd=folder, check=True)
        subprocess.run([*mpifort, "main.o", *(f"{name}.o" for name in parts), "-o", scratch / f"hot-{form}"], cwd=folder, check=True)


def compared(name: str, prefix: Path, scratch: Path, expected: float | None, counts: dict):
    def test(_world) -> str:
        *abi, path = name.split("/")
        if abi and abi[0] in FORTRAN and not shutil.which(FORTRAN_COMPILER):
            raise Skip(f"no {FORTRAN_COMPILER} here")
        counts[name] = count(prefix, path, scratch / "-".join(["hot", *abi]), scratch)
        if expected is None:
            return f"{counts[name]:.1f} instructions"
        ratio = counts[name] / expected
        said = f"{counts[name]:.1f} instructions, expected {expected:.1f}"
        if not LEAST <= ratio <= MOST:
            raise Problem(f"{said}: {ratio:.3f} times as many")
        return said
    return test


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--update", action="store_true", help="write the counts down")
    options = parser.parse_args()
    paths = [path for path in [*PATHS, *TOGETHER, *(f"{form}/{path}" for form in [*ABIS, *FORTRAN] for path in CONVERTED)] if options.only in path]
    if options.list:
        print("\n".join(paths))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    expected = {path: float(number) for path, number in map(str.split, EXPECTED.read_text().splitlines())}
    with tempfile.TemporaryDirectory() as folder:
        scratch, counts = Path(folder), {}
        subprocess.run([prefix / "bin/mpicc", "-O2", "-g", HERE / "hot.c", "-o", scratch / "hot"], check=True)
        for abi, (header, library) in ABIS.items():
            subprocess.run(["cc", "-O2", "-g", f"-I{header}", HERE / "hot.c", prefix / library, "-o", scratch / f"hot-{abi}"], check=True)
        build_fortran(prefix, scratch, [form for form in FORTRAN if any(path.startswith(f"{form}/") for path in paths)])
        status = harness.run_suite("counts", [
            Case(path, compared(path, prefix, scratch, None if options.update else expected[path], counts)) for path in paths])
    if options.update and not status:
        EXPECTED.write_text("".join(f"{path} {number:.1f}\n" for path, number in (expected | counts).items()))
    return status


if __name__ == "__main__":
    sys.exit(main())
