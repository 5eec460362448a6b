#!/usr/bin/env python3
"""Plays an agent that floods its launcher, or keeps silent: false_agent.py KIND... with the launcher's greeting in HELLO."""

import os
import struct
import sys
import time

# The numbers of the frames of an agent.
STARTED, COUNTED, PACKET, OUTPUT, END_OF_OUTPUT, BEAT, UP = 0, 3, 5, 8, 9, 12, 13
# One of many bytes, for buffers that would grow.
BLOCK = 64 << 10


def number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def frame(kind: int, *parts: bytes) -> bytes:
    body = b"".join([number(kind), *parts])
    return struct.pack("<I", len(body)) + body


def packet(text: str) -> bytes:
    return frame(PACKET, number(0), number(len(text)), text.encode())


def text(words: str) -> bytes:
    return number(len(words)) + words.encode()


def exchange(puts: list = (), gets: list = ()) -> bytes:
    """Values of rank 0, and questions; no fence."""
    values = [number(0) + text(key) + text(value) for key, value in puts]
    return frame(UP, number(len(values)), *values, number(len(gets)), *map(text, gets), b"\0\0")


def write(data: bytes, to: int = 1) -> None:
    while data:
        data = data[os.write(to, data):]


def endless(data: bytes, to: int = 1) -> None:
    data *= max(1, BLOCK // len(data))
    while True:
        write(data, to)


def greet() -> None:
    write(os.environ["HELLO"].encode() + b"\n")


def begin() -> None:
    greet()
    write(frame(STARTED, number(1), number(2 * os.getpid())))


def main(kind: str) -> None:
    if kind == "lines before the greeting":
        endless(b"welcome\n")
    if kind == "a line without end before the greeting":
        endless(b"welcome ")
    if kind == "silence amid the start":
        greet()
        time.sleep(1000)
    begin()
    if kind == "small frames":
        endless(frame(BEAT))
    if kind == "output":
        endless(frame(OUTPUT, number(0), number(0), number(16000), b"x" * 16000))
    if kind == "ends of output":
        endless(frame(END_OF_OUTPUT, number(0), number(0)))
    if kind == "pieces of a profile":
        endless(frame(COUNTED, number(1 << 40), number(16000), b"x" * 16000) + frame(COUNTED, number(0), number(100), b"x" * 100))
    if kind == "a line of a rank without end":
        endless(packet("x" * 4000))
    if kind == "text on standard error":
        endless(b"text \x1b[31m\n", to=2)
    if kind == "questions without reading the answers":
        write(exchange([("k", "v" * 3000)]))
        endless(exchange(gets=["k"] * 1000))
    if kind == "questions without an answer":
        for key in range(1 << 40):
            write(exchange(gets=[str(key * 100 + more) for more in range(100)]))
    if kind == "lines of a status":
        endless(packet(f"status {'x' * 4000}\n"))
    if kind == "values":
        for key in range(1 << 40):
            write(exchange([(str(key), "v" * 3000)]))
    if kind == "lines of the exchange":
        endless(packet("fence\n"))
    if kind == "a frame of 4 GiB":
        write(struct.pack("<I", 2**32 - 1))
        endless(b"x")
    time.sleep(1000)


if __name__ == "__main__":
    main(sys.argv[1])
