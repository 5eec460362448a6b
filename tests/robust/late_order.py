"""A slow connection: the agent gets its order and the end of its input in one piece, after the launcher is gone.

late_order.py HOST COMMAND...
"""

import signal
import subprocess
import sys

# The launcher's death asks its commands to end.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
agent = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
sys.stdout.buffer.write(agent.stdout.readline())
sys.stdout.buffer.flush()
order = sys.stdin.buffer.read()
agent.stdin.write(order)
agent.stdin.close()
agent.stdout.read()
sys.exit(agent.wait())
