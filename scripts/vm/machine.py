"""One machine: QEMU with its input and output."""

import collections
import ctypes
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from kernel import Kernel, Trouble, archive

HERE = Path(__file__).resolve().parent
QEMU = "qemu-system-x86_64"
TRIAL_SECONDS = 10
# An emulated machine begins the command after 5 to 10 seconds. One stood still before that for half an hour.
BEGIN_SECONDS = 120
STARTS = 3
BEGUN = b"begun\n"
ALIVE = "verbs-vm: alive"
PR_SET_PDEATHSIG = 1

# Options that save the cost of the guest's clock and mitigations.
BOOT = "console=ttyS0 quiet loglevel=4 panic=-1 tsc=reliable mitigations=off audit=0 apparmor=0"


class Ended(Exception):
    """A signal asked this process to end."""

    def __init__(self, number: int, _frame=None):
        super().__init__(number)
        self.status = 128 + number


def end(number, frame):
    raise Ended(number)


class Stream:
    """A pipe out of QEMU, read to its end by a thread."""

    def __init__(self, take):
        self.reader, self.writer = os.pipe()
        self.take = take
        self.thread = threading.Thread(target=self.read, daemon=True)

    def read(self) -> None:
        with os.fdopen(self.reader, "rb", buffering=0) as reader:
            while piece := reader.read(1 << 16):
                self.take(piece)

    def begin(self) -> None:
        os.close(self.writer)
        self.thread.start()


def pass_to(stream):
    """A closed output does not stop the machine."""
    def take(piece: bytes) -> None:
        try:
            stream.buffer.write(piece)
            stream.buffer.flush()
        except OSError:
            pass
    return take


class Machine:
    def __init__(self, kernel: Kernel, accel: str, cpus: int, memory: int, verbose: bool):
        self.kernel, self.cpus, self.memory, self.verbose = kernel, cpus, memory, verbose
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, end)
        if accel != "tcg":
            works = self.kvm_works()
            if accel == "kvm" and not works:
                raise Trouble("KVM boots no kernel here")
            accel = "kvm" if works else "tcg"
        self.accel = accel

    def kvm_works(self) -> bool:
        """A device that opens is no proof: below some hypervisors no stock kernel starts. So one is tried, once for each
        start of this machine."""
        if not os.access("/dev/kvm", os.R_OK | os.W_OK):
            return False
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        note = self.kernel.folder / "kvm"
        if note.exists() and note.read_text().split()[0] == boot:
            return note.read_text().split()[1] == "works"
        said = bytearray()
        console = Stream(said.extend)
        with self.started("kvm", 512, {"console": console}, {}, "verbs_vm=trial") as qemu:
            works = wait(qemu, TRIAL_SECONDS) is not None
        console.thread.join()
        works = works and ALIVE.encode() in said
        note.write_text(f"{boot} {'works' if works else 'fails'}\n")
        if not works:
            print("verbs-vm: /dev/kvm is there and boots no kernel: TCG is used", file=sys.stderr)
        return works

    def run(self, command: str, shares: list, modules: list, kind: str, mtu: int, seconds: float) -> int:
        settings = {"SHARES": len(shares), "KIND": kind, "MTU": mtu, "TREE": self.kernel.modules,
                    "MODULES": " ".join(map(str, modules))}
        settings |= {f"SHARE_{number}": folder for number, folder in enumerate(shares)}
        text = "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items())
        files = {"verbs-vm/settings": (0o644, text.encode()), "verbs-vm/command": (0o755, command.encode())}
        for name in ("guest", "on-host", "rail"):
            files[f"verbs-vm/{name}"] = (0o755, (HERE / name).read_bytes())
        folders = {"root": Path("/"), **{f"share{number}": folder for number, folder in enumerate(shares)}}
        for _ in range(STARTS - 1):
            code = self.tried(files, folders, seconds, BEGIN_SECONDS)
            if code is not None:
                return code
            print(f"verbs-vm: the machine has not begun the command after {BEGIN_SECONDS} s: it is started again", file=sys.stderr)
        return self.tried(files, folders, seconds, seconds)

    def tried(self, files: dict, folders: dict, seconds: float, begin: float) -> int | None:
        """The command's exit status. None: it has not begun within `begin` seconds, fewer than the `seconds` of all."""
        status, lines = bytearray(), collections.deque(maxlen=60)
        streams = {"console": Stream(lambda piece: self.show(piece, lines)), "out": Stream(pass_to(sys.stdout)),
                   "err": Stream(pass_to(sys.stderr)), "status": Stream(status.extend)}
        began = time.monotonic()
        with self.started(self.accel, self.memory, streams, folders, "verbs_vm=run", files) as qemu:
            first = min(seconds, begin)
            code = wait(qemu, first)
            stands_still = code is None and first < seconds and BEGUN not in status
            if code is None and not stands_still:
                code = wait(qemu, seconds - first)
        for stream in streams.values():
            stream.thread.join()
        if stands_still:
            return None
        if self.verbose:
            print(f"verbs-vm: {self.accel}, {time.monotonic() - began:.1f} s", file=sys.stderr)
        word = status.removeprefix(BEGUN).decode(errors="replace").strip()
        if word.isdigit():
            return int(word)
        if code is None:
            print(f"verbs-vm: the time is up ({seconds:g} s, --timeout)", file=sys.stderr)
            return 124
        print(b"".join(lines).decode(errors="replace"), file=sys.stderr)
        raise Trouble(f"the machine ended before the command did (QEMU: {code}); its last words are above")

    def show(self, piece: bytes, lines) -> None:
        lines.extend(piece.splitlines(keepends=True))
        if self.verbose:
            pass_to(sys.stderr)(piece)

    def started(self, accel: str, memory: int, streams: dict, folders: dict, boot: str, files: dict | None = None):
        """QEMU, which dies with the block, or with this process if that is killed."""
        init = {"init": (0o755, (HERE / "init").read_bytes())}
        first = os.memfd_create("initramfs", 0)
        with os.fdopen(os.dup(first), "wb") as file:
            file.write(self.kernel.initramfs.read_bytes() + archive(init | (files or {})))
        arguments = [QEMU, "-machine", f"q35,accel={accel}", "-cpu", "host" if accel == "kvm" else "max",
                     "-smp", str(self.cpus), "-m", str(memory), "-nodefaults", "-no-user-config", "-no-reboot",
                     "-display", "none", "-kernel", str(self.kernel.image), "-initrd", f"/proc/self/fd/{first}",
                     "-append", f"{BOOT} {boot}", "-device", "virtio-serial-pci"]
        for number, (name, stream) in enumerate(streams.items(), 1):
            arguments += ["-add-fd", f"fd={stream.writer},set={number}",
                          "-chardev", f"file,id={name},path=/dev/fdset/{number},append=on"]
            arguments += ["-serial", "chardev:console"] if name == "console" else \
                ["-device", f"virtserialport,chardev={name},name=verbs-vm.{name}"]
        for name, folder in folders.items():
            path = str(folder).replace(",", ",,")
            mode = ",readonly=on" if name == "root" else ""
            arguments += ["-fsdev", f"local,id={name},path={path},security_model=none,multidevs=remap{mode}",
                          "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]
        return Running(arguments, [first, *(stream.writer for stream in streams.values())], streams, first)


class Running:
    def __init__(self, arguments: list, descriptors: list, streams: dict, first: int):
        self.arguments, self.descriptors, self.streams, self.first = arguments, descriptors, streams, first
        self.libc, self.parent = ctypes.CDLL(None), os.getpid()

    def __enter__(self) -> subprocess.Popen:
        try:
            # QEMU's own complaints belong to the console.
            self.process = subprocess.Popen(
                self.arguments, stdin=subprocess.DEVNULL, stdout=self.streams["console"].writer, stderr=subprocess.STDOUT,
                pass_fds=self.descriptors, start_new_session=True, preexec_fn=self.die_with_parent)
        finally:
            os.close(self.first)
            for stream in self.streams.values():
                stream.begin()
        return self.process

    def die_with_parent(self) -> None:
        self.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # It may be dead by now.
        if os.getppid() != self.parent:
            os._exit(1)

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def wait(process: subprocess.Popen, seconds: float) -> int | None:
    """Its exit status; None when the time was up."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
