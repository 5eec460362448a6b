"""A stand-in for an MPI program: does the steps that its arguments name, and speaks to the launcher as a rank does.

A step is NAME or NAME=VALUE; with a number and a colon before it, it is for that rank alone.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

RANK = int(os.environ["FISHPLATE_RANK"])
control = socket.socket(fileno=int(os.environ["FISHPLATE_CONTROL_FD"]))
progress = 0
meetings = 0


def say(*lines):
    control.send("".join(line + "\n" for line in lines).encode())


def wait(text, counting):
    """Inside MPI until the launcher is gone: answers every request."""
    global progress
    while True:
        request = control.recv(4096).decode()
        if not request:
            sys.exit(99)
        for line in request.splitlines():
            assert line == "report", line
            progress += counting
            first, *rest = text.format(progress=progress).split("|")
            say("status " + first, *("status " + line for line in rest), "status-end")


def meet():
    """Waits until all ranks have come as far, by marks in the job's shared memory, which no rank uses otherwise."""
    global meetings
    meetings += 1
    size = int(os.environ["FISHPLATE_SIZE"])
    segment = int(os.environ["FISHPLATE_SEGMENT_FD"])
    os.pwrite(segment, bytes([meetings]), RANK)
    while len(marks := os.pread(segment, size, 0)) < size or min(marks) < meetings:
        time.sleep(0.001)


def processes_that_show(secret):
    """Processes of this machine with the secret, as bytes or in hexadecimal digits, on their command line or in their environment."""
    seen = []
    for folder in Path("/proc").glob("[0-9]*"):
        for file in (folder / "cmdline", folder / "environ"):
            try:
                text = file.read_bytes()
            except OSError:  # The process has ended, or has no such text.
                continue
            if secret in text or secret.hex().encode() in text.lower():
                seen.append(str(file))
    return seen


def show_secret():
    """Prints the job's secret, the processes that show it, and whether its file can be changed."""
    file = int(os.environ["FISHPLATE_SECRET_FD"])
    secret = os.pread(file, 1000, 0)
    try:
        os.pwrite(file, b"x", 0)
        state = "writable"
    except PermissionError:
        state = "sealed"
    print("secret", RANK, secret.hex(), state, *processes_that_show(secret), flush=True)


def step(name, value):
    if name == "init":
        say(f"init {os.getpid()}")
    elif name == "meet":
        meet()
    elif name == "finalize":
        say("finalize")
    elif name == "abort":
        say("abort " + value)
        time.sleep(1000)
    elif name == "fault":
        say("fault " + value)  # CODE TEXT
    elif name == "nonsense":
        say("nonsense", "init x", "status", "\x01\x02")
    elif name == "recv":
        wait("op=MPI_Recv progress=7|waits from=" + value + " comm=MPI_COMM_WORLD", 0)
    elif name == "status":
        wait(value, 0)
    elif name == "moving":
        wait("op=MPI_Recv progress={progress}", 1)
    elif name == "put":
        say("put " + value)
    elif name == "get":
        say("get " + value)
        while not (line := control.recv(1 << 14).decode()).startswith(f"value {value} "):
            assert line == "report\n", line
        print("got", RANK, line.split(" ")[2], end="", flush=True)
    elif name == "fence":
        say("fence")
        while (line := control.recv(1 << 14).decode()) != "fence\n":
            assert line == "report\n", line
    elif name == "enter":
        say("fence")
    elif name == "ask":
        count, _, key = value.partition(" ")
        for _ in range(int(count)):
            say("get " + key)
    elif name == "answers":
        count = 0
        while count < int(value):
            count += control.recv(1 << 14).decode().count("value ")
        print("answers", count, flush=True)
    elif name == "exit":
        os._exit(int(value))
    elif name == "kill":
        if value != "SIGKILL":
            signal.signal(getattr(signal, value), signal.SIG_DFL)
        os.kill(os.getpid(), getattr(signal, value))
    elif name == "ignore":
        signal.signal(getattr(signal, value), signal.SIG_IGN)
    elif name == "catch":
        signal.signal(getattr(signal, value), lambda number, _: os.write(1, f"caught {value}\n".encode()))
    elif name == "sleep":
        end = time.monotonic() + float(value)
        while time.monotonic() < end:
            time.sleep(end - time.monotonic())
    elif name == "print":
        print(value.replace("\\n", "\n"), end="", flush=True)
    elif name == "error":
        print(value, file=sys.stderr, flush=True)
    elif name == "pid":
        print("pid", RANK, os.getpid(), flush=True)
    elif name == "stdin":
        print("stdin", RANK, repr(sys.stdin.read()), flush=True)
    elif name == "secret":
        show_secret()
    elif name == "child":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    elif name == "daemon":
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
        subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True, **quiet)
    elif name == "flood":
        line = value * 100 + "\n"
        for _ in range(20000):
            sys.stdout.write(line)
    elif name == "limit":
        import resource

        print("limit", RANK, resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True)
    else:
        sys.exit("no such step: " + name)


signal.signal(signal.SIGINT, signal.SIG_DFL)
for word in sys.argv[1:]:
    for_rank, colon, rest = word.partition(":")
    if colon and for_rank.isdigit():
        if int(for_rank) != RANK:
            continue
        word = rest
    step(*(word.partition("=")[::2]))
