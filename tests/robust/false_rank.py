#!/usr/bin/env python3
"""Plays a rank that floods its launcher over the control socket: false_rank.py KIND."""

import os
import socket
import sys

control = socket.socket(fileno=int(os.environ["FISHPLATE_CONTROL_FD"]))
kind = sys.argv[1]
if kind == "questions without reading the answers":
    control.send(f"put k {'v' * 3000}\n".encode())
    while True:
        control.send(b"get k\n" * 1000)
for turn in range(1 << 40):
    control.send({
        "empty lines": "\n" * 16000,
        "a line without end": "x" * 16000,
        "lines of a status": f"status {'x' * 4000}\n" * 4,
        "values": f"put {turn} {'v' * 3000}\n",
        "questions without an answer": "".join(f"get {turn * 100 + more}\n" for more in range(100)),
        "warnings": "".join(f"warning {turn * 100 + more} {'w' * 100}\n" for more in range(100)),
    }[kind].encode())
