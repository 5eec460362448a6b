"""Output without prefixes: the pieces of a line stay together, a prompt is seen, and nothing is added or lost."""

import os
import select
import shlex
import subprocess
import time
from pathlib import Path

from harness import Problem

AS_HOST = f"{Path(__file__).resolve().parent / 'as-host'} {{host}}"
# Options of a job on this machine, and of one with an agent for each rank.
PLACES = {"on this machine": [], "on two hosts": ["--launch-with", AS_HOST, "--hosts", "a,b"]}
ROUNDS = 20
# The rounds that must succeed: a busy machine may stop a rank for longer than its piece waits.
ENOUGH = 15


def fifos(world, *names: str) -> list[Path]:
    paths = [world.work / f"lines.{name}" for name in names]
    for path in paths:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    return paths


def command(world, place: str, ranks: int, script: str) -> list[str]:
    return [*map(str, [world.mpiexec, *PLACES[place], "-n", ranks]), "sh", "-c", script]


def pieces_are_joined(place: str, stream: int):
    """Each line of rank 0 has two pieces, and between them rank 1 writes a line."""
    def test(world):
        there, back = (shlex.quote(str(path)) for path in fifos(world, "there", "back"))
        script = (f"exec 3>&{stream}; for round in $(seq {ROUNDS}); do if [ $FISHPLATE_RANK = 0 ]; "
                  f"then printf abc >&3; echo > {there}; read word < {back}; echo def >&3; "
                  f"else read word < {there}; echo xyz >&3; echo > {back}; fi; done")
        done = subprocess.run(command(world, place, 2, script), stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        seen = done.stdout if stream == 1 else done.stderr
        joined = seen.splitlines().count(b"abcdef")
        if done.returncode or joined < ENOUGH:
            raise Problem(f"{joined} of {ROUNDS} lines are whole: {done.returncode}, {seen!r}")
        if len(seen) != ROUNDS * 11 or seen.count(b"xyz\n") != ROUNDS:
            raise Problem(f"bytes are missing or were added: {seen!r}")
        return f"{joined} of {ROUNDS} lines are whole"
    return f"pieces of a line are joined: {'stdout' if stream == 1 else 'stderr'} {place}", test


def a_prompt_is_seen(place: str):
    """The rank continues only after its prompt has been answered."""
    def test(world):
        script = 'if [ $FISHPLATE_RANK = 0 ]; then printf "Enter n: "; read n; echo "n is $n"; fi'
        with subprocess.Popen(command(world, place, 2, script), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            seen, until = b"", time.monotonic() + 20
            while seen != b"Enter n: ":
                if not select.select([process.stdout], [], [], max(0, until - time.monotonic()))[0]:
                    process.kill()
                    raise Problem(f"no prompt after 20 s, only {seen!r}")
                if not (more := os.read(process.stdout.fileno(), 100)):
                    raise Problem(f"the job ended after {seen!r}")
                seen += more
            rest, _ = process.communicate(b"7\n", timeout=20)
        if rest != b"n is 7\n" or process.returncode:
            raise Problem(f"{process.returncode}: {rest!r}")
    return f"a prompt is seen {place}", test


def the_last_line_needs_no_end(place: str):
    def test(world):
        done = subprocess.run(command(world, place, 2, "printf last"), stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        if (done.returncode, done.stdout, done.stderr) != (0, b"lastlast", b""):
            raise Problem(str(done))
    return f"the last line needs no end {place}", test


def the_order_of_writes(length: int, rounds: int, seconds: float):
    """Ranks write lines of `length` bytes in turn, not in the order of their numbers, and faster than the launcher reads; both streams of a rank are one pipe.

    The output is read from `seconds` on. With enough of it, the launcher's own queue is full before, but no rank's pipe, which holds 64 writes."""
    def test(world):
        gates = " ".join(shlex.quote(str(path)) for path in fifos(world, *"0123"))
        line = "x" * (length - len("out 0\n"))
        # 3, 2, 1, 0, 3 ...: each opens the gate of the next. Both sides keep a gate open, so that it has no end.
        script = (f'gate() {{ shift $1; gate=$2; }}; gate $FISHPLATE_RANK {gates}; exec 3<>$gate; '
                  f'gate $((($FISHPLATE_RANK + 3) % 4)) {gates}; exec 4<>$gate; '
                  f'for round in $(seq {rounds}); do [ $FISHPLATE_RANK$round = 31 ] || read word <&3; '
                  f'echo "out ${{FISHPLATE_RANK}}{line}"; echo "err ${{FISHPLATE_RANK}}{line}" >&2; echo >&4; done')
        with subprocess.Popen(command(world, "on this machine", 4, script), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            time.sleep(seconds)
            seen, _ = process.communicate(timeout=60)
        lines = [text.rstrip("x") for text in seen.decode().splitlines()]
        wanted = [f"{stream} {rank}" for rank in (3, 2, 1, 0) for stream in ("out", "err")] * rounds
        if process.returncode or lines != wanted or len(seen) != len(wanted) * length:
            raise Problem(f"{process.returncode}: {lines}")
    return f"output has the order of the writes: {2 * 4 * rounds} lines of {length} bytes", test


def words_before_death(world):
    """What a rank has written, without the end of the line, precedes the line about its death."""
    script = '[ $FISHPLATE_RANK = 1 ] || exec sleep 60; printf "bad input" >&2; exit 3'
    done = subprocess.run(command(world, "on this machine", 2, script), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    lines = done.stderr.splitlines()
    if done.returncode != 3 or lines[:1] != ["bad input"] or not lines[1].startswith("fishplate: "):
        raise Problem(f"{done.returncode}: {done.stderr!r}")


def tests() -> list:
    return [
        *[pieces_are_joined(place, stream) for place in PLACES for stream in (1, 2)],
        *[a_prompt_is_seen(place) for place in PLACES],
        *[the_last_line_needs_no_end(place) for place in PLACES],
        the_order_of_writes(6, ROUNDS, 0),
        the_order_of_writes(3000, 30, 1),
        ("words before a death", words_before_death),
    ]
