"""The virtual machine, seen from the host: its input and output, its end, and that it leaves nothing behind."""

import os
import secrets
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from harness import Case, Problem

ROOT = Path(__file__).resolve().parent.parent.parent
VM = ROOT / "scripts" / "verbs-vm"
MARK = "VERBS_VM_TEST"
# Exit status of scripts/verbs-vm when the machine cannot start.
NO_MACHINE = 125


started: list["Run"] = []


def clean_up(_world) -> None:
    """Ends the machines that a failed test has left."""
    while started:
        run = started.pop()
        for pid in run.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        run.process.communicate()


class Run:
    """One start of the machine. A unique variable in the environment identifies all its processes."""

    def __init__(self, *arguments, env: dict | None = None, cwd: Path | None = None):
        self.mark = secrets.token_hex(8)
        self.process = subprocess.Popen([str(VM), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, cwd=cwd, env=os.environ | {MARK: self.mark} | (env or {}))

        started.append(self)

    def end(self, status: int, seconds: float = 180) -> tuple[str, str]:
        try:
            out, err = (text.decode(errors="replace") for text in self.process.communicate(timeout=seconds))
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Problem(f"has not ended after {seconds:g} s") from None
        if self.process.returncode != status:
            raise Problem(f"exit status {self.process.returncode}, not {status}: {err[-1000:]}")
        self.check_gone()
        return out, err

    def members(self) -> dict[int, str]:
        """Their names, by process id."""
        mark, found = f"{MARK}={self.mark}".encode(), {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "comm").read_text().strip()
            except OSError:
                continue
        return found

    def qemu(self) -> list[int]:
        return [pid for pid, name in self.members().items() if name.startswith("qemu")]

    def check_gone(self) -> None:
        end = time.monotonic() + 5
        while left := self.members():
            if time.monotonic() > end:
                raise Problem(f"processes are left: {left}")
            time.sleep(0.05)

    def wait_for_qemu(self) -> int:
        end = time.monotonic() + 60
        while not (found := self.qemu()):
            if time.monotonic() > end or self.process.poll() is not None:
                raise Problem("QEMU was not started")
            time.sleep(0.05)
        return found[0]


def passes_all_on(_world) -> None:
    """Status, both streams, environment, folder and arguments are passed unchanged; only writes to shared folders persist."""
    with tempfile.TemporaryDirectory(prefix="verbs vm, ", dir=ROOT / "build") as name:
        folder = Path(name)
        script = 'echo "$0|$1|$GREETING|$(pwd)"; echo to stderr >&2; echo kept >kept; echo lost >"$2"; cat; exit 7'
        lost = ROOT / "build" / f"lost-{os.getpid()}"
        run = Run("--share", folder, "--", "sh", "-c", script, "a 'b'", "$c\n", lost, env={"GREETING": "gr\"üß\nt"}, cwd=folder)
        out, err = run.end(7)
        if (out, err) != (f"a 'b'|$c\n|gr\"üß\nt|{folder}\n", "to stderr\n"):
            raise Problem(f"{out!r} {err!r}")
        if (folder / "kept").read_text() != "kept\n":
            raise Problem("what was written to a shared folder is not there")
        if lost.exists():
            lost.unlink()
            raise Problem("what was written outside of shared folders is there")


def passes_much_on(_world) -> None:
    out, _ = Run("--", "sh", "-c", "seq 200000; sleep 1000 & kill -9 $$").end(137)
    if out != "".join(f"{number}\n" for number in range(1, 200001)):
        raise Problem(f"{len(out)} bytes of output, which ends with {out[-30:]!r}")


def time_is_up(_world) -> None:
    # Longer than a start takes on most machines, so that the command runs by then; the outcome is the same if not.
    _, err = Run("--timeout", "12", "--", "sleep", "1000").end(124)
    if "the time is up (12 s" not in err:
        raise Problem(err)


def ended_by(number: signal.Signals):
    def test(_world) -> None:
        run = Run("--", "sleep", "1000")
        run.wait_for_qemu()
        os.kill(run.process.pid, number)
        run.end(128 + number if number != signal.SIGKILL else -number, seconds=20)
    return test


def qemu_dies(_world) -> None:
    run = Run("--", "sleep", "1000")
    os.kill(run.wait_for_qemu(), signal.SIGKILL)
    _, err = run.end(NO_MACHINE, seconds=20)
    if "the machine ended before the command did" not in err:
        raise Problem(err)


def wrong_words(_world) -> None:
    for words, expected in [(["--share", "/nowhere", "--", "true"], "verbs-vm: /nowhere: no such file"),
                            (["--module", "/nowhere.ko", "--", "true"], "/nowhere.ko: no such file")]:
        _, err = Run(*words).end(NO_MACHINE)
        if expected not in err:
            raise Problem(err)


def tests() -> list[Case]:
    return [
        Case("vm: status, streams, surroundings and shares are passed on", passes_all_on, short=False),
        Case("vm: much output arrives whole", passes_much_on, short=False),
        Case("vm: --timeout", time_is_up, short=False),
        Case("vm: SIGTERM ends it", ended_by(signal.SIGTERM)),
        Case("vm: SIGINT ends it", ended_by(signal.SIGINT), short=False),
        Case("vm: SIGKILL leaves nothing behind", ended_by(signal.SIGKILL), short=False),
        Case("vm: QEMU dies", qemu_dies, short=False),
        Case("vm: what is not there is named", wrong_words),
    ]
