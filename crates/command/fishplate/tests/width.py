"""Runs a command on a terminal of a number of columns, and prints what it shows: width.py COLUMNS COMMAND..."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

columns, *command = sys.argv[1:]
reader, terminal = pty.openpty()
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, int(columns), 0, 0))
process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.DEVNULL)
os.close(terminal)
shown = b""
while True:
    try:
        part = os.read(reader, 65536)
    except OSError:
        # All who had the terminal are gone.
        break
    if not part:
        break
    shown += part
sys.stdout.write(shown.decode().replace("\r\n", "\n"))
sys.exit(process.wait())
