"""A mount namespace with an empty /tmp and /dev/shm: every file found there was left by a job under test."""

import os
import subprocess
import sys

INSIDE = "TESTS_INSIDE"
# Folders that are empty in the namespace.
EMPTY = ("/tmp", "/dev/shm")


def enter() -> None:
    """Starts this script again in a new mount namespace, as root of it."""
    if INSIDE in os.environ:
        return
    for rights in (["--mount"], ["--mount", "--map-root-user"]):
        command = ["unshare", *rights, "--propagation", "private"]
        probe = subprocess.run([*command, "true"], capture_output=True, text=True)
        if probe.returncode == 0:
            os.execvpe("unshare", [*command, sys.executable, *sys.argv], os.environ | {INSIDE: "1"})
    sys.exit(f"the tests need a mount namespace, and unshare says: {probe.stderr.strip()}")


def mount(*arguments) -> None:
    """For this namespace only."""
    subprocess.run(["mount", *map(str, arguments)], check=True)


def empty_folders() -> None:
    for folder in EMPTY:
        mount("-t", "tmpfs", "tmpfs", folder)
