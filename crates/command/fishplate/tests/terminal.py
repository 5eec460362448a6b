"""Runs a command on a terminal of its own, as the foreground job of a small shell, and plays the user.

    terminal.py KEYS WAIT_FOR COMMAND...

Waits until the terminal shows WAIT_FOR, types KEYS (Python escapes), and prints what the terminal showed. When the
command stops, the shell says which of the processes with the command's mark are stopped, and continues it.
"""

import os
import pty
import signal
import sys


def states():
    """State and program of all processes with the command's mark, without this one and the player; a stopped one is T."""
    found = []
    own = {str(os.getpid()), str(os.getppid())}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if pid in own:
            continue
        try:
            if open(f"/proc/{pid}/environ", "rb").read().find(MARK) >= 0:
                words = open(f"/proc/{pid}/cmdline").read().rstrip("\0").split("\0")
                found.append((open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0], words[0]))
        except OSError:
            pass
    return found


def shell(command):
    """The foreground job, in a process group of its own; the terminal is ours again when it stops or ends."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        os.tcsetpgrp(0, os.getpgrp())
        if not os.WIFSTOPPED(status):
            print("EXIT", os.waitstatus_to_exitcode(status), flush=True)
            return
        # Another look if a rank has not got its signal yet.
        for _ in range(1000):
            ranks = sorted(state for state, name in states() if name == "python3")
            if ranks == ["T", "T"]:
                break
        print("STOPPED", ranks, flush=True)
        os.tcsetpgrp(0, job)
        os.killpg(job, signal.SIGCONT)


MARK = ("TEST_MARK=" + os.environ["TEST_MARK"]).encode() + b"\0"
keys, wait_for, *command = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    shell(command)
    os._exit(0)

shown = b""
keys = keys.encode().decode("unicode_escape").encode()
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    if not part:
        break
    shown += part
    if keys and shown.count(wait_for.encode()) >= 2:
        os.write(terminal, keys)
        keys = b""
os.waitpid(child, 0)
sys.stdout.write(shown.decode().replace("\r\n", "\n"))
