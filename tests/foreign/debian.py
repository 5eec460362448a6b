"""Source packages of Debian, at fixed versions and hashes.

apt-get fetches them with a configuration of its own (lists and cache in a folder under build/), so the system's apt is neither
read nor changed. Nothing of them is ever committed.
"""

import hashlib
import subprocess
import tarfile
from pathlib import Path

SOURCES = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main\n"
SECONDS = 600


class Unavailable(Exception):
    """The reason why a package cannot be had."""


def fetch(package: str, archive: str, sha256: str, cache: Path) -> Path:
    """The path of a package's original archive, fetched unless it is there."""
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / archive
    if not path.exists():
        download(package, cache)
    seen = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
    if seen != sha256:
        path.unlink(missing_ok=True)
        raise Unavailable(f"{archive} has SHA-256 {seen}, not {sha256}")
    return path


def unpack(archive: Path, home: Path, wanted=lambda member: True) -> None:
    """Unpacks the wanted members into a folder, once."""
    if (home / "ready").exists():
        return
    home.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as tar:
        tar.extractall(home, members=[member for member in tar if wanted(member)], filter="data")
    (home / "ready").touch()


def download(package: str, cache: Path) -> None:
    apt = cache / f"apt-{package}"
    for folder in ("lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "sources.list").write_text(SOURCES)
    options = ["-qq"]
    for setting in (f"Dir::Etc::sourcelist={apt}/sources.list", "Dir::Etc::sourceparts=-", f"Dir::State::lists={apt}/lists",
                    f"Dir::Cache={apt}/cache", "APT::Sandbox::User=", "Acquire::Retries=2"):
        options += ["-o", setting]
    for command in (["update"], ["source", "--download-only", package]):
        try:
            done = subprocess.run(["apt-get", *options, *command], cwd=cache, text=True, capture_output=True, timeout=SECONDS)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise Unavailable(f"apt-get {command[0]}: {problem}") from None
        if done.returncode:
            raise Unavailable(f"apt-get {command[0]} ended with {done.returncode}: {(done.stderr or done.stdout).strip()}")
