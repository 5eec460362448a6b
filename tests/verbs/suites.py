"""The project's own suites for any device, over the machine's: from rxe0 of host 0 to rxe2 of host 1, over rail 0; some over both rails.

Both ends are threads of one process that sees all devices. The test programs are built before the machine starts.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import harness
from harness import Case, Problem

PEER = {"FISHPLATE_TEST_PEER": "rxe2", "FISHPLATE_TEST_RAIL": "rail 0", "FISHPLATE_TEST_RAILS": "rxe0,rxe1 rxe2,rxe3"}
# Package, its test program, the tests of it, the seconds that they may take, and whether they are for `--short`.
SUITES = [
    ("verbs", "it", "suite::pair::", 240, True),
    ("verbs", "it", "suite::loopback::", 240, False),
    ("verbs", "it", "devices::", 120, False),
    ("verbs", "it", "rails::", 120, False),
    ("mpi", "it", "counted::", 240, False),
    ("mpi", "it", "counted_rails::", 240, False),
    ("channel", "channel", "rdma::verbs", 600, False),
]
# iWARP's two ends are two of one device: its hosts have networks of their own, and a process is in one network.
IWARP_PEER = {"FISHPLATE_TEST_PEER": "siw0"}
OF_IWARP = [("verbs", "it", "iwarp::", 120, False), ("channel", "channel", "rdma::verbs", 600, False)]
BUILT = "test-programs.json"


def prepare(options) -> None:
    """Notes where cargo has put the test programs. All of the workspace is built, as `make test` does: a part of it would be built
    with other features of its dependencies, and so a second time."""
    command = [os.environ.get("CARGO", "cargo"), "test", "--quiet", "--workspace", "--no-run", "--message-format", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, cwd=harness.ROOT)
    if done.returncode != 0:
        raise Problem("the test programs cannot be built")
    messages = map(json.loads, done.stdout.splitlines())
    programs = {f"{Path(message['manifest_path']).parent.name} {message['target']['name']}": message["executable"]
                for message in messages if message.get("executable") and message["profile"]["test"]}
    built = options.prefix / "tests" / "verbs" / BUILT
    built.parent.mkdir(parents=True, exist_ok=True)
    built.write_text(json.dumps(programs))


def suite(package: str, program: str, only: str, seconds: float, before: tuple, env: dict):
    def test(world) -> None:
        path = json.loads((world.work / BUILT).read_text())[f"{package} {program}"]
        ran = world.run(*before, path, "--ignored", "--test-threads", 1, *([only] if only else []), seconds=seconds, env=env)
        counts = re.search(r"test result: ok\. (\d+) passed; 0 failed", ran.out)
        if ran.code != 0 or not counts or counts[1] == "0":
            raise Problem(f"exit status {ran.code}:\n{ran.out[-3000:]}{ran.err[-1000:]}")
    return test


def cases(suites: list, before: tuple = (), env: dict = PEER) -> list[Case]:
    """`before` are the words before each command."""
    return [Case(f"suite: {package} {only}", suite(package, program, only, seconds, before, env), short)
            for package, program, only, seconds, short in suites]


def tests() -> list[Case]:
    return cases(SUITES)
