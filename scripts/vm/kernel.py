"""The machine's kernel, from Debian's package, and an initial file system with the modules to reach the root.

All is kept in the cache: `tree` is the unpacked package, from which the machine loads more modules; `vmlinux` is the bare
kernel, which starts without firmware and unpacks nothing; `initramfs` holds busybox and modules. What changes from run to
run is appended to the last (see `archive`), so no run writes a file.
"""

import fcntl
import lzma
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


class Trouble(Exception):
    """The reason why the machine cannot start."""


PACKAGES = ["qemu-system-x86", "busybox-static", "kmod", "iproute2", "libibverbs1", "librdmacm1", "ibverbs-providers",
            "ibverbs-utils", "perftest"]

# Modules for the root over 9p, and for the devices. No module file records that rxe needs crc32_generic.
MODULES = ["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "crc32_generic", "veth", "ib_uverbs",
           "rdma_ucm", "rdma_rxe"]

# Drivers for hardware that the machine has not: most of the package.
USELESS = ["sound", "drivers/gpu", "drivers/media", "drivers/net/ethernet", "drivers/net/wireless", "drivers/scsi",
           "drivers/usb", "drivers/ata", "drivers/iio", "drivers/input", "drivers/hid", "drivers/hwmon", "drivers/staging"]


@dataclass
class Kernel:
    folder: Path
    version: str

    @property
    def image(self) -> Path:
        return self.folder / "vmlinux"

    @property
    def modules(self) -> Path:
        return self.folder / "tree" / "lib" / "modules" / self.version

    @property
    def initramfs(self) -> Path:
        return self.folder / "initramfs"

    @staticmethod
    def prepared(cache: Path) -> "Kernel":
        """From the cache, or made now. Several runs may ask at once."""
        install(PACKAGES)
        cache.mkdir(parents=True, exist_ok=True)
        with open(cache / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for done in cache.glob("*/version"):
                return Kernel(done.parent, done.read_text().strip())
            return make(cache)


def run(*command, **more) -> str:
    """Its output; its error output is the trouble where it fails."""
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    if done.returncode:
        text = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise Trouble(f"`{' '.join(map(str, command))}` ended with {done.returncode}: {' | '.join(text)}")
    return done.stdout


def install(packages: list) -> None:
    if os.uname().machine != "x86_64" or not shutil.which("dpkg-query"):
        raise Trouble("this needs Debian or Ubuntu on x86-64")
    seen = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages],
                          capture_output=True, text=True).stdout
    missing = [package for package in packages if f"{package} installed\n" not in seen]
    if not missing:
        return
    apt(["install", "-y", "-q", "--no-install-recommends", *missing], f"installing {' '.join(missing)}")


def apt(words: list, what: str, **more) -> None:
    """apt-get, as root, once more with fresh lists if it fails."""
    rights = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if rights and not shutil.which("sudo"):
        raise Trouble(f"{what} takes root: run `apt-get {' '.join(words)}` as root first")
    print(f"verbs-vm: {what}", file=sys.stderr)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        run(*rights, "apt-get", *words, env=environment, **more)
    except Trouble:
        run(*rights, "apt-get", "update", "-q", env=environment)
        run(*rights, "apt-get", *words, env=environment, **more)


def make(cache: Path) -> Kernel:
    work = cache / "unfinished"
    shutil.rmtree(work, ignore_errors=True)
    (work / "package").mkdir(parents=True)
    package = package_name()
    apt(["download", "-q", package], f"fetching {package}", cwd=work / "package")
    run("dpkg", "-x", *(work / "package").glob("*.deb"), work / "tree")
    shutil.rmtree(work / "package")
    tree = work / "tree"
    if not (tree / "lib").exists():
        (tree / "lib").symlink_to("usr/lib")
    kernel = Kernel(work, next((tree / "lib/modules").iterdir()).name)
    for part in USELESS:
        shutil.rmtree(kernel.modules / "kernel" / part, ignore_errors=True)
    shutil.rmtree(tree / "usr/share", ignore_errors=True)
    run("depmod", "-b", tree, kernel.version)
    packed = tree / "boot" / f"vmlinuz-{kernel.version}"
    kernel.image.write_bytes(bare(packed.read_bytes(), tree / "boot" / f"config-{kernel.version}"))
    kernel.initramfs.write_bytes(first_files(kernel))
    final = cache / package
    shutil.rmtree(final, ignore_errors=True)
    # Its presence says that all the rest is there.
    (work / "version").write_text(kernel.version)
    work.rename(final)
    return Kernel(final, kernel.version)


def package_name() -> str:
    """The kernel that the present release of the system would install."""
    for attempt in range(2):
        said = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True).stdout
        if found := re.search(r"Depends: (linux-image-\d\S+)", said):
            return found[1]
        if attempt == 0:
            apt(["update", "-q"], "refreshing the lists of packages")
    raise Trouble("apt knows no linux-image-amd64: this needs Debian's archive among its sources")


def bare(packed: bytes, config: Path) -> bytes:
    """The ELF kernel within a packed one, if it can be started by itself; otherwise the packed one."""
    if "CONFIG_PVH=y" in config.read_text():
        for at in (found.start() for found in re.finditer(rb"\xfd7zXZ\0", packed)):
            try:
                kernel = lzma.LZMADecompressor().decompress(packed[at:])
            except lzma.LZMAError:
                continue
            if kernel.startswith(b"\x7fELF"):
                return kernel
    return packed


def first_files(kernel: Kernel) -> bytes:
    files = {"bin/busybox": (0o755, Path("/bin/busybox").read_bytes())}
    order = []
    for module in MODULES:
        shown = run("modprobe", "-d", kernel.folder / "tree", "-S", kernel.version, "--show-depends", module)
        for line in shown.splitlines():
            path = Path(line.split()[1]) if line.startswith("insmod ") else None
            if path and path.name not in order:
                order.append(path.name)
                files[f"modules/{path.name}"] = (0o644, path.read_bytes())
    files["modules/order"] = (0o644, "".join(f"{name}\n" for name in order).encode())
    return archive(files)


def archive(files: dict) -> bytes:
    """Files, by path with mode and contents, in the form that the kernel unpacks (cpio, `newc`)."""
    entries = {}
    for path, (mode, contents) in files.items():
        for parent in reversed(Path(path).parents[:-1]):
            entries[str(parent)] = (stat.S_IFDIR | 0o755, b"")
        entries[path] = (stat.S_IFREG | mode, contents)
    entries["TRAILER!!!"] = (0, b"")
    out = bytearray()
    for number, (path, (mode, contents)) in enumerate(entries.items(), 1):
        name = path.encode() + b"\0"
        fields = [number, mode, 0, 0, 1, 0, len(contents), 0, 0, 0, 0, len(name), 0]
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out += bytes(-len(out) % 4) + contents
        out += bytes(-len(out) % 4)
    return bytes(out)
