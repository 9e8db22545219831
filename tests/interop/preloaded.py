"""`jms-broker` without its start: a process that has loaded its modules, and forks for each call.

To load a command takes 0.4 s of a core, a broker 0.6 s; to fork takes 10 ms. Each call is a process
of its own, with its own arguments, folder, environment and files. Tests of how the command starts
and of terminals start it anew; so does each program that measures.
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
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Final, Literal

CALL: Final = Path(__file__).with_name("preloaded_call.py")
ENDS_SECONDS: Final = 10
CALL_BYTES_MAX: Final = 2**18
"""Most bytes of a call, which is one packet: its arguments and its environment."""


OTHERS: Final = ("broker.__main__", "broker.cli", "broker.doctor", "storage.sql.migrations")
"""Modules that a broker does not import: those of commands, and those that alembic runs."""


class Loaded(Enum):
    """The modules that are loaded: those of commands, or those of a broker."""

    COMMANDS = "commands"
    BROKER = "broker"


def preloaded_command() -> list[str]:
    """Return a command that does what `jms-broker` does; start the process that it needs."""
    return [sys.executable, "-IS", str(CALL), place_of_calls(Loaded.COMMANDS)]


@cache
def place_of_calls(loaded: Loaded) -> str:
    """Return the socket of a process that forks for each call; start it, with `loaded` modules."""
    from tests.interop.broker_process import environment

    folder = Path(tempfile.mkdtemp(prefix="preloaded-"))
    place = folder / "socket"
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, str(place), loaded.value],
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
    return str(place)


# ---- the process that forks


def serve(place: str) -> None:
    """Fork for each call at the socket `place`, until standard input ends.

    Return in each process that is to run the command; never return in the first one.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
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
    """Fork once more for the command; send the id of its process, and its status at its end."""
    received, files, _, _ = socket.recv_fds(connection, CALL_BYTES_MAX, 3)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(files, *marshal.loads(received))
        return
    for each in files:
        os.close(each)
    # before its caller can send a signal to the group, and so to the shards that a broker starts
    os.setpgid(pid, pid)
    # a caller that has ended meanwhile is told nothing
    with suppress(BrokenPipeError):
        connection.send(b"%d" % pid)
        _, status = os.waitpid(pid, 0)
        connection.send(b"%d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(
    files: list[int],
    command: list[str],
    arguments: list[str],
    folder: str,
    variables: dict[str, str],
) -> None:
    """Take over the arguments, the folder, the environment and the files of a caller."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = _file(0, "r"), _file(1, "w"), _file(2, "w")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["jms-broker", *arguments]
    # by which a broker starts its shards, and itself anew
    sys.orig_argv = [sys.executable, *command, *arguments]


def _file(descriptor: int, mode: Literal["r", "w"]) -> io.TextIOWrapper:
    return open(descriptor, mode, encoding="utf-8", closefd=False, buffering=1)


def _load(loaded: Loaded) -> None:
    """Import the modules, except those whose libraries are missing."""
    for name in _commands() if loaded is Loaded.COMMANDS else _broker():
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    gc.freeze()


def _commands() -> Iterator[str]:
    package = importlib.import_module("broker.cli")
    return (module.name for module in pkgutil.iter_modules(package.__path__, "broker.cli."))


def _broker() -> Iterator[str]:
    """Yield the names of the modules that a broker may load, whatever its settings."""
    yield "broker.cli.serve"
    for name in ("broker", "storage"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.startswith(OTHERS):
                yield module.name


if __name__ == "__main__":
    _load(Loaded(sys.argv[2]))
    serve(sys.argv[1])
    importlib.import_module("jms_broker").main()
