"""The project's own suites for any device, over the machine's: from rxe0 of host 0 to rxe2 of host 1, over rail 0.

Both ends are threads of one process that sees all devices. The test programs are built before the machine starts.
"""

import json
import os
import re
import subprocess
from pathlib import Path

from case import Case, Problem

PEER = {"FISHPLATE_TEST_PEER": "rxe2", "FISHPLATE_TEST_RAIL": "rail 0"}
# Package, its test program, tests of it, and seconds that they may take.
SUITES = [
    ("verbs", "it", "suite::pair::", 240, True),
    ("verbs", "it", "suite::loopback::", 240, False),
    ("verbs", "it", "devices::", 120, False),
    ("mpi", "counted", "", 240, True),
    ("channel", "channel", "rdma::verbs", 600, False),
]
# iWARP's two ends are two of one device: hosts have networks of their own there, and a process is in one.
IWARP_PEER = {"FISHPLATE_TEST_PEER": "siw0"}
OF_IWARP = [("verbs", "it", "iwarp::", 120, False), ("channel", "channel", "rdma::verbs", 600, False)]
BUILT = "test-programs.json"


def prepare(options) -> None:
    build(options, SUITES)


def build(options, suites: list) -> None:
    """Outside of the machine: builds them, and writes down where cargo has put them."""
    packages = [word for package in sorted({suite[0] for suite in suites}) for word in ("-p", package)]
    tests = [word for program in sorted({program for package, program, *_ in suites if program != package}) for word in ("--test", program)]
    command = [os.environ.get("CARGO", "cargo"), "test", "--quiet", *packages, "--lib", *tests, "--no-run", "--message-format", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Problem("the test programs cannot be built")
    messages = map(json.loads, done.stdout.splitlines())
    programs = {f"{package_of(message)} {message['target']['name']}": message["executable"] for message in messages
                if message.get("executable") and message["profile"]["test"]}
    built = options.prefix / "tests" / "verbs" / BUILT
    built.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(built.read_text()) if built.exists() else {}
    built.write_text(json.dumps(known | programs))


def package_of(message: dict) -> str:
    """The name of a package is that of its folder."""
    return Path(message["manifest_path"]).parent.name


def suite(package: str, program: str, only: str, seconds: float, before: tuple, env: dict):
    def test(world) -> None:
        path = json.loads((world.work / BUILT).read_text())[f"{package} {program}"]
        ran = world.run(*before, path, "--ignored", "--test-threads", 1, *([only] if only else []), seconds=seconds, env=env)
        counts = re.search(r"test result: ok\. (\d+) passed; 0 failed", ran.out)
        if ran.code != 0 or not counts or counts[1] == "0":
            raise Problem(f"exit status {ran.code}:\n{ran.out[-3000:]}{ran.err[-1000:]}")
    return test


def cases(suites: list, before: tuple = (), env: dict = PEER) -> list[Case]:
    """`before` are words before each command."""
    return [Case(f"suite: {package} {program} {only}".rstrip(), suite(package, program, only, seconds, before, env), short)
            for package, program, only, seconds, short in suites]


def tests() -> list[Case]:
    return cases(SUITES)
