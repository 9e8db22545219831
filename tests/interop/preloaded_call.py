"""Call `jms-broker` in a process that preloaded.py forks: `python -IS preloaded_call.py SOCKET …`.

It imports little, not even pathlib, to start fast.
"""

import array
import marshal
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence

ANSWER_BYTES = 20


def call(
    connection: socket.socket,
    command: Sequence[str],
    arguments: Sequence[str],
    *,
    folder: str,
    variables: Mapping[str, str],
    files: Sequence[int],
) -> int:
    """Have `jms-broker` called with `arguments`; return the id of its process.

    `command` is how a user starts it, for a broker that starts itself again. `files` are its
    standard input, output and error.
    """
    text = marshal.dumps((list(command), list(arguments), folder, dict(variables)))
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))]
    connection.sendmsg([text], rights)
    return int(connection.recv(ANSWER_BYTES))


def main(place: str, *arguments: str) -> None:
    """Call the command at the socket `place`, pass signals on to it, and end with its status."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(place)
        folder = os.getcwd()  # noqa: PTH109
        command = ["jms-broker"]
        pid = call(
            connection, command, arguments, folder=folder, variables=os.environ, files=(0, 1, 2)
        )
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda received, _: os.kill(pid, received))
        sys.exit(int(connection.recv(ANSWER_BYTES)) % 256)


if __name__ == "__main__":
    main(*sys.argv[1:])
