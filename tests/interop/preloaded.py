"""`jms-broker`, and PySpark's processes, forked from a process that has loaded their modules.

To load a command takes 0.4 s of a core, a broker 0.6 s, PySpark 1 s; to fork takes 10 ms. Each call
is a process of its own, with its own arguments, folder, environment and files. Tests of how the
command starts and of terminals start it anew; so does each program that measures.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import select
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
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

WORKING: Final = ("rows", "sink", "source", "wire")
"""The packages of pyspark_amqp that tasks use; the others are for commands."""


class Loaded(Enum):
    """The modules that are loaded: of commands, of a broker, or of PySpark's daemons."""

    COMMANDS = "commands"
    BROKER = "broker"
    SPARK = "processes of PySpark"


def preloaded_command(loaded: Loaded = Loaded.COMMANDS) -> list[str]:
    """Return a command that does what `jms-broker` does; start the process that it needs."""
    return [sys.executable, "-IS", str(CALL), place_of_calls(loaded)]


@cache
def preloaded_python() -> Path:
    """Return a program for Spark to start as `python`, which forks the modules of PySpark.

    Each driver starts five daemons, and each stream a process for its source. Each of them would
    load PySpark and PyArrow: a second of a core. Spark ends that of a source by a signal, which
    reaches a forked one a little late: it may notice before that its socket has been closed.
    """
    program = Path(place_of_calls(Loaded.SPARK)).with_name("python")
    forked, python = shlex.join(preloaded_command(Loaded.SPARK)), shlex.quote(sys.executable)
    program.write_text(
        f'#!/bin/sh\ncase "$2" in pyspark.*) exec {forked} "$@";; esac\nexec {python} "$@"\n'
    )
    program.chmod(0o755)
    return program


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


class Callers:
    """The calls whose commands run: the id of each process, and the connection to its caller."""

    def __init__(self) -> None:
        self._by_process: Final[dict[int, tuple[int, socket.socket]]] = {}

    def processes(self) -> list[int]:
        """Return descriptors that are readable once their process has ended."""
        return list(self._by_process)

    def add(self, pid: int, connection: socket.socket) -> None:
        """Tell the caller the id of its process."""
        self._by_process[os.pidfd_open(pid)] = pid, connection
        # a caller that has ended meanwhile is told nothing
        with suppress(BrokenPipeError):
            connection.send(b"%d" % pid)

    def report(self, process: int) -> None:
        """Tell the caller how its process has ended."""
        os.close(process)
        pid, connection = self._by_process.pop(process)
        _, status = os.waitpid(pid, 0)
        with connection, suppress(BrokenPipeError):
            connection.send(b"%d" % os.waitstatus_to_exitcode(status))

    def forget(self) -> None:
        """Close everything, in a process that has been forked for one call."""
        for process, (_, connection) in self._by_process.items():
            os.close(process)
            connection.close()
        self._by_process.clear()


def serve(place: str) -> None:
    """Fork for each call at the socket `place`, until standard input ends.

    Return in each process that is to run the command; never return in the first one.
    """
    callers = Callers()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place)
        listener.listen(100)
        print("loaded", flush=True)
        while True:
            ready, _, _ = select.select([0, listener.fileno(), *callers.processes()], [], [])
            if 0 in ready:
                os._exit(0)
            for each in ready:
                if each != listener.fileno():
                    callers.report(each)
                elif _answer(listener, callers):
                    return


def _answer(listener: socket.socket, callers: Callers) -> bool:
    """Fork for the next call; return whether this process is the one that is to run it."""
    connection, _ = listener.accept()
    received, files, _, _ = socket.recv_fds(connection, CALL_BYTES_MAX, 3)
    if not received:
        # the caller was killed between two of its steps
        connection.close()
        return False
    pid = os.fork()
    if pid == 0:
        connection.close()
        callers.forget()
        _become(files, *marshal.loads(received))
        return True
    for each in files:
        os.close(each)
    # before its caller can send a signal to the group, and so to the shards that a broker starts
    os.setpgid(pid, pid)
    callers.add(pid, connection)
    return False


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
    python = [] if command[0] == sys.executable else [sys.executable]
    sys.orig_argv = [*python, *command, *arguments]


def _file(descriptor: int, mode: Literal["r", "w"]) -> io.TextIOWrapper:
    return open(descriptor, mode, encoding="utf-8", closefd=False, buffering=1)


def _load(loaded: Loaded) -> None:
    """Import the modules, except those whose libraries are missing."""
    names = {Loaded.COMMANDS: _commands, Loaded.BROKER: _broker, Loaded.SPARK: _of_spark}
    for name in names[loaded]():
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    gc.freeze()


def _commands() -> Iterator[str]:
    """Yield the names of all commands' modules, and of what errors, help and host names need."""
    yield from ("encodings.idna", "typer.rich_utils")
    package = importlib.import_module("broker.cli")
    for module in pkgutil.iter_modules(package.__path__, "broker.cli."):
        yield module.name


def _broker() -> Iterator[str]:
    """Yield the names of the modules that a broker may load, whatever its settings."""
    yield from ("broker.cli.application", "broker.cli.serve", "uvloop")
    for name in ("broker", "storage"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.startswith(OTHERS):
                yield module.name


def _of_spark() -> Iterator[str]:
    """Yield the names of what PySpark's processes load."""
    yield from ("pyspark.worker", "pyspark.sql.streaming.python_streaming_source_runner")
    for name in ("pyspark.sql.worker", *(f"pyspark_amqp.{each}" for each in WORKING)):
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{name}."):
            yield module.name


def _command() -> None:
    importlib.import_module("jms_broker").main()


def _of_pyspark() -> None:
    """Do what `python -m` does with a module of PySpark, with PYTHONPATH as it is now."""
    _, module, *arguments = sys.argv[1:]
    sys.path[:0] = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.argv = ["python", *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _run(loaded: Loaded) -> None:
    """Run what was called, and end as Python would, but let the system free the memory.

    Python frees each object by itself. That writes to all pages that this process shares with the
    one that forked it, so that each is copied: 80 ms of a core.
    """
    status: str | int | None = None
    try:
        (_of_pyspark if loaded is Loaded.SPARK else _command)()
    except SystemExit as end:
        status = end.code
    if not isinstance(status, int | None):
        sys.exit(status)
    # as Python does at its end, and multiprocessing in the processes that it forks
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    modules = Loaded(sys.argv[2])
    _load(modules)
    serve(sys.argv[1])
    _run(modules)
