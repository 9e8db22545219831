"""`jms-broker` without its start: a process that has loaded the command, and forks for each call.

To load the command takes 0.4 s of a core, to fork 10 ms. Each call is a process of its own, with
its own arguments, folder, environment and files. Tests of how the command starts, of signals and of
terminals start it anew; so does each test that runs a broker.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import marshal
import os
import pkgutil
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, Literal

CALL: Final = Path(__file__).with_name("preloaded_call.py")
ENDS_SECONDS: Final = 10
LENGTH_BYTES: Final = 4


@cache
def preloaded_command() -> list[str]:
    """Return a command that does what `jms-broker` does; start the process that it needs."""
    from tests.interop.broker_process import environment

    folder = Path(tempfile.mkdtemp(prefix="preloaded-"))
    place = folder / "socket"
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, str(place)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"loaded\n"

    def end() -> None:
        process.communicate(timeout=ENDS_SECONDS)
        shutil.rmtree(folder)

    atexit.register(end)
    return [sys.executable, "-IS", str(CALL), str(place)]


# ---- the process that forks


def serve(place: str) -> None:
    """Fork for each call at the socket `place`, until standard input ends.

    Return in each process that is to run the command; never return in the first one.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen(100)
        print("loaded", flush=True)
        while True:
            ready, _, _ = select.select([listener.fileno(), 0], [], [])
            if 0 in ready:
                os._exit(0)
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    return _answer(connection)
            _reap()


def _reap() -> None:
    """Take note of the processes that have answered their calls."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _answer(connection: socket.socket) -> None:
    """Fork once more for the command; send its status when it has ended."""
    head, files, _, _ = socket.recv_fds(connection, LENGTH_BYTES, 3)
    length, received = int.from_bytes(head, "big"), b""
    while len(received) < length:
        received += connection.recv(length - len(received))
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(files, *marshal.loads(received))
        return
    for each in files:
        os.close(each)
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        connection.send(bytes([os.waitstatus_to_exitcode(status) % 256]))
    os._exit(0)


def _become(files: list[int], arguments: list[str], folder: str, variables: dict[str, str]) -> None:
    """Take over the arguments, the folder, the environment and the files of a caller."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = _file(0, "r"), _file(1, "w"), _file(2, "w")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["jms-broker", *arguments]


def _file(descriptor: int, mode: Literal["r", "w"]) -> io.TextIOWrapper:
    return open(descriptor, mode, encoding="utf-8", closefd=False, buffering=1)


def _load() -> None:
    """Import all modules of the command line, except those whose libraries are missing."""
    package = importlib.import_module("broker.cli")
    for module in pkgutil.iter_modules(package.__path__, "broker.cli."):
        with suppress(ModuleNotFoundError):
            importlib.import_module(module.name)
    gc.freeze()


if __name__ == "__main__":
    _load()
    serve(sys.argv[1])
    importlib.import_module("jms_broker").main()
