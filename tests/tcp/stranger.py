#!/usr/bin/env python3
"""A stranger on the network of a job: connects to the listeners of ranks without knowing the job's secret.

    stranger.py connect COUNT KIND,KIND... RECORDED ADDRESS PORT [ADDRESS PORT...]
    stranger.py record INTERFACE SECONDS

`connect` opens COUNT connections at once, the kinds and the listeners in turn, and prints a JSON object: for each kind the connections
that were made and refused, those that the peer closed, the bytes that it sent, and the longest time until it closed. The kinds are
`garbage`, `half` (the first half of a greeting), `silent`, `slow` (a byte in a tenth of a second), `leave` (closes at once) and
`replay`, which repeats the greeting in the file RECORDED. `record` waits for a greeting of a job on an interface and prints it.
"""

import asyncio
import json
import os
import socket
import struct
import sys
import time

MAGIC = b"fplate\x01"
CALL, PROOF = 104, 40
# The time after which a connection that the peer keeps open is given up.
PATIENCE = 20
STEP = 0.1


async def until_closed(reader) -> int:
    """Bytes that arrive before the peer closes the connection."""
    count = 0
    try:
        while more := await reader.read(1 << 16):
            count += len(more)
    except ConnectionError:
        pass
    return count


async def speak(kind: str, reader, writer, recorded: dict) -> None:
    """Sends what a stranger of this kind sends."""
    if kind == "garbage":
        writer.write(os.urandom(4096))
    elif kind == "half":
        writer.write(MAGIC + b"\x01" + os.urandom(CALL // 2 - 8))
    elif kind == "slow":
        for byte in MAGIC + b"\x01" + os.urandom(CALL - 8):
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(STEP)
    elif kind == "replay":
        writer.write(bytes.fromhex(recorded["call"]) + bytes.fromhex(recorded["proof"]))
    await writer.drain()


async def visit(kind: str, place: tuple, recorded: dict, tally: dict) -> None:
    row = tally.setdefault(kind, {"connected": 0, "refused": 0, "closed": 0, "bytes": 0, "longest": 0.0})
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(*place), PATIENCE)
    except (OSError, asyncio.TimeoutError):
        row["refused"] += 1
        return
    row["connected"] += 1
    began = time.monotonic()
    if kind == "leave":
        writer.close()
        row["closed"] += 1
        return
    listening = asyncio.ensure_future(until_closed(reader))
    speaking = asyncio.ensure_future(speak(kind, reader, writer, recorded))
    done, _ = await asyncio.wait([listening], timeout=PATIENCE)
    speaking.cancel()
    await asyncio.gather(speaking, return_exceptions=True)
    writer.close()
    if done:
        row["closed"] += 1
        row["bytes"] = max(row["bytes"], listening.result())
        row["longest"] = round(max(row["longest"], time.monotonic() - began), 2)
    else:
        listening.cancel()


async def connect(count: int, kinds: list, recorded: dict, places: list) -> dict:
    tally = {}
    await asyncio.gather(*(visit(kinds[at % len(kinds)], places[at % len(places)], recorded, tally) for at in range(count)))
    return tally


def payload(frame: bytes) -> tuple[tuple, bytes]:
    """The connection of a TCP segment over IPv4, and its bytes."""
    if frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_TCP:
        return (), b""
    end = 14 + struct.unpack("!H", frame[16:18])[0]
    tcp = 14 + 4 * (frame[14] & 15)
    ports = struct.unpack("!HH", frame[tcp:tcp + 4])
    return (frame[26:30], frame[30:34], *ports), frame[tcp + 4 * (frame[tcp + 12] >> 4):end]


def record(interface: str, seconds: float) -> dict:
    """The messages of the caller in the first greeting that passes."""
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    tap.bind((interface, 0))
    print("ready", flush=True)
    calls, end = {}, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        tap.settimeout(left)
        try:
            connection, said = payload(tap.recv(1 << 16))
        except TimeoutError:
            break
        if said.startswith(MAGIC + b"\x01") and len(said) >= CALL:
            calls[connection] = said[:CALL]
        if said.startswith(MAGIC + b"\x03") and len(said) >= PROOF and connection in calls:
            return {"call": calls[connection].hex(), "proof": said[:PROOF].hex()}
    return {}


def main() -> None:
    if sys.argv[1] == "record":
        print(json.dumps(record(sys.argv[2], float(sys.argv[3]))))
        return
    count, kinds, recorded, *places = sys.argv[2:]
    with open(recorded) as file:
        known = json.load(file)
    pairs = [(address, int(port)) for address, port in zip(places[::2], places[1::2])]
    print(json.dumps(asyncio.run(connect(int(count), kinds.split(","), known, pairs))))


if __name__ == "__main__":
    main()
