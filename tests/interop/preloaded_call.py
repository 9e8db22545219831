"""Call `jms-broker` in a process that preloaded.py forks: `python -IS preloaded_call.py SOCKET …`.

It imports little, not even pathlib, to start fast.
"""

import array
import marshal
import os
import socket
import sys

place, arguments = sys.argv[1], sys.argv[2:]
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(place)
    call = marshal.dumps((arguments, os.getcwd(), dict(os.environ)))  # noqa: PTH109
    files = array.array("i", [0, 1, 2])
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)]
    connection.sendmsg([len(call).to_bytes(4, "big")], rights)
    connection.sendall(call)
    status = connection.recv(1)
sys.exit(status[0] if status else "jms-broker was killed")
