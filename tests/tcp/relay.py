"""A remote shell over TCP without one: it runs a command on another host, with the standard streams here.

    relay.py serve ADDRESS PORT           accept one call, run the command that it names, pass its input and output
    relay.py call ADDRESS PORT COMMAND..  call, and be that command here
"""

import os
import socket
import subprocess
import sys
import threading
import time


def pump(read, write, end) -> None:
    """Passes bytes on until one of the two ends."""
    try:
        while block := read():
            write(block)
        end()
    except OSError:
        pass


def writer(fd: int):
    def write(block: bytes) -> None:
        while block:
            block = block[os.write(fd, block):]
    return write


def serve(address: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family) as listener:
        caller, _ = listener.accept()
    with caller, caller.makefile("rb", buffering=0) as stream:
        words = stream.readline().decode().rstrip("\n").split("\0")
        run = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        there = threading.Thread(target=pump, daemon=True, args=(
            lambda: stream.read(1 << 16), writer(run.stdin.fileno()), run.stdin.close))
        there.start()
        pump(lambda: os.read(run.stdout.fileno(), 1 << 16), caller.sendall, lambda: caller.shutdown(socket.SHUT_WR))
        return run.wait()


def call(address: str, port: int, words: list) -> int:
    end = time.monotonic() + 10
    while True:
        try:
            listener = socket.create_connection((address, port))
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    with listener:
        listener.sendall("\0".join(words).encode() + b"\n")
        there = threading.Thread(target=pump, daemon=True, args=(
            lambda: os.read(0, 1 << 16), listener.sendall, lambda: listener.shutdown(socket.SHUT_WR)))
        there.start()
        pump(lambda: listener.recv(1 << 16), writer(1), lambda: None)
    return 0


if __name__ == "__main__":
    what, where, number, *command = sys.argv[1:]
    # A thread may still wait for input, which nobody needs any more.
    os._exit(serve(where, int(number)) if what == "serve" else call(where, int(number), command))
