"""Packages of Debian: sources at fixed versions and hashes, and binaries that are unpacked without being installed.

apt-get fetches them with a configuration of its own (lists and cache in a folder under build/), so the system's apt is not
changed. Nothing of them is ever committed.
"""

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

MIRROR = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian"
SUITE = "bookworm"
SECONDS = 600


class Unavailable(Exception):
    """The reason why a package cannot be had."""


@contextlib.contextmanager
def alone(cache: Path):
    """Holds a folder of fetched files: two suites that begin on a fresh machine may want the same package."""
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch(package: str, archive: str, sha256: str, cache: Path, suite: str = SUITE) -> Path:
    """The path of a package's original archive, fetched unless it is there."""
    path = cache / archive
    with alone(cache):
        if not path.exists():
            download(package, cache, suite)
    seen = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"
    if seen != sha256:
        path.unlink(missing_ok=True)
        raise Unavailable(f"{archive} has SHA-256 {seen}, not {sha256}")
    return path


def unpack(archive: Path, home: Path, wanted=lambda member: True) -> None:
    """Unpacks the wanted members into a folder, once."""
    with alone(home.parent):
        if (home / "ready").exists():
            return
        home.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as tar:
            tar.extractall(home, members=[member for member in tar if wanted(member)], filter="data")
        (home / "ready").touch()


def download(package: str, cache: Path, suite: str = SUITE) -> None:
    options = configuration(cache / f"apt-{package}", f"deb-src {MIRROR} {suite} main\n")
    # Of other suites, mirrors may have the original archive alone.
    only = [] if suite == SUITE else ["--tar-only"]
    for command in (["update"], ["source", "--download-only", *only, package]):
        apt_get(options, command, cwd=cache)


# The file of a folder that says which packages are unpacked there.
READY = ".packages"


def is_ready(root: Path, wanted: str) -> bool:
    """Whether the folder has these packages. A folder with others is removed."""
    ready = root / READY
    if ready.exists() and ready.read_text() == wanted:
        return True
    shutil.rmtree(root, ignore_errors=True)
    return False


def contents(packages: list[str], suite: str = SUITE) -> str:
    """What a folder says in which packages are unpacked with those that they depend on."""
    return "\n".join([suite, "with dependencies", *packages])


def installed(packages: list[str], root: Path, cache: Path, suite: str = SUITE, bare: bool = False, hashes: dict | None = None,
              architecture: str = "") -> Path:
    """A folder into which packages are unpacked, with those that they depend on and this machine lacks; once. `bare` takes this
    machine for an empty one, which another architecture needs. A package may have a version, `NAME=VERSION`, and a hash, by that name. The archives stay in the cache,
    where other roots find them."""
    wanted = contents(packages, suite)
    if is_ready(root, wanted):
        return root
    folder = cache / "-".join(filter(None, ["apt", suite, architecture]))
    options = lists(folder, suite, architecture)
    if bare:
        (folder / "empty").touch()
        options += ["-o", f"Dir::State::status={folder}/empty"]
    words = ["install", "--no-install-recommends", "--allow-downgrades", "--assume-yes", *packages]
    # It lists what it would fetch: with an empty cache, everything.
    (folder / "none/partial").mkdir(parents=True, exist_ok=True)
    listed = apt_get([*options, "-o", f"Dir::Cache::archives={folder}/none"], ["--print-uris", *words])
    apt_get(options, ["--download-only", *words])
    root.mkdir(parents=True)
    archives = [folder / "cache/archives" / line.split()[1] for line in listed.splitlines() if line.startswith("'")]
    for archive in archives:
        check(archive, hashes or {})
        extract(archive, root)
    (root / READY).write_text(wanted)
    return root


def extracted(packages: list[str], root: Path, cache: Path, hashes: dict | None = None) -> Path:
    """A folder into which packages alone are unpacked, once."""
    wanted = "\n".join([SUITE, *packages])
    if is_ready(root, wanted):
        return root
    folder = cache / f"apt-{SUITE}"
    options = lists(folder, SUITE)
    root.mkdir(parents=True)
    apt_get(options, ["download", *packages], cwd=root)
    for archive in root.glob("*.deb"):
        check(archive, hashes or {})
        extract(archive, root)
        archive.unlink()
    (root / READY).write_text(wanted)
    return root


def lists(folder: Path, suite: str, architecture: str = "") -> list[str]:
    """Options of apt-get, with fresh lists of a suite."""
    options = configuration(folder, "".join(f"deb {MIRROR} {name} main\n" for name in (suite, f"{suite}-updates")))
    for setting in ("APT::Architecture", "APT::Architectures") if architecture else ():
        options += ["-o", f"{setting}={architecture}"]
    if not (folder / "fresh").exists():
        apt_get(options, ["update"])
        (folder / "fresh").touch()
    return options


def check(archive: Path, hashes: dict) -> None:
    name, version = archive.name.split("_")[:2]
    wanted = hashes.get(f"{name}={version.replace('%3a', ':')}")
    if wanted and (seen := hashlib.sha256(archive.read_bytes()).hexdigest()) != wanted:
        raise Unavailable(f"{archive.name} has SHA-256 {seen}, not {wanted}")


def extract(archive: Path, root: Path) -> None:
    done = subprocess.run(["dpkg-deb", "-x", archive, root], capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"dpkg-deb -x {archive.name}: {done.stderr.strip()}")


def configuration(folder: Path, sources: str) -> list[str]:
    """Options by which apt-get has lists, cache and sources of its own in this folder."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text(sources)
    options = ["-qq"]
    for setting in (f"Dir::Etc::sourcelist={folder}/sources.list", "Dir::Etc::sourceparts=-", f"Dir::State::lists={folder}/lists",
                    f"Dir::Cache={folder}/cache", "APT::Sandbox::User=", "Acquire::Retries=2"):
        options += ["-o", setting]
    return options


def apt_get(options: list[str], command: list[str], cwd: Path | None = None) -> str:
    words = " ".join(command[:2])
    try:
        done = subprocess.run(["apt-get", *options, *command], cwd=cwd, text=True, capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Unavailable(f"apt-get {words}: {problem}") from None
    if done.returncode:
        raise Unavailable(f"apt-get {words} ended with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
