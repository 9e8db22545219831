"""A PostgreSQL server for the tests, in a temporary folder, on a Unix socket in it.

It is started for the first test that needs it, once per process and purpose; never as root, which
PostgreSQL refuses.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import asyncpg
import pytest

from storage.sql.postgresql.store import PostgresStore

T = TypeVar("T")

OLDEST: Final = 15

PASSWORD: Final = "open-sesame"

SETTINGS: Final = """
listen_addresses = ''
unix_socket_directories = '{folder}'
"""

SMALL: Final = """
shared_buffers = 32MB
max_connections = 40
"""
"""Settings with little memory, because several test processes run a server at the same time."""

WATCH: Final = 'cat; "$1" -w -m immediate -D "$2/data" stop; rm -rf "$2"/*'
"""Stops the server in folder $2 once the other end of the script's input is closed."""

_running: Final[dict[str, Server]] = {}
_names: Final = itertools.count(1)


def binaries() -> Path | None:
    """Return the folder of the newest installed server, on the path or of Debian; None without.

    It is at least of version OLDEST.
    """
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parts[-3]),
        reverse=True,
    )
    found = shutil.which("initdb")
    candidates = [*([Path(found).resolve()] if found else []), *debian]
    return next((path.parent for path in candidates if _version(path) >= OLDEST), None)


def _version(initdb: Path) -> int:
    said = subprocess.run([initdb, "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.split()[2].split(".")[0])


def unprivileged() -> str | None:
    """Return the user that runs a server if this process runs as root; else None."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Server:
    """A PostgreSQL cluster; `database` creates a new database in it.

    Apart from where it listens, it has PostgreSQL's default configuration and `settings`. Its
    processes have `variables` in their environment.
    """

    def __init__(
        self,
        folder: Path,
        bin_folder: Path,
        *,
        settings: str = SMALL,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.folder: Final = folder
        self.binaries: Final = bin_folder
        self._environment: Final = os.environ | (variables or {})
        self._user: Final = unprivileged()
        self._new_store: Final[list[str]] = []
        if self._user is not None:
            shutil.chown(folder, self._user)
        self.make()
        # the last line of a setting counts
        with (folder / "data" / "postgresql.conf").open("a") as config:
            config.write(SETTINGS.format(folder=folder) + settings)
        self.start()
        # this process stops the server however the test process ends, even by a timeout
        self._watch: Final = subprocess.Popen(
            ["/bin/sh", "-c", WATCH, "watch", str(bin_folder / "pg_ctl"), str(folder)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            **self.account(),
        )

    def make(self) -> None:
        """Make the folder of the data."""
        self.run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")

    def account(self) -> dict[str, Any]:
        """Return the user and groups to run the server's programs; {} for this process' own."""
        if self._user is None:
            return {}
        group = pwd.getpwnam(self._user).pw_gid
        return {"user": self._user, "group": group, "extra_groups": []}

    def remove(self) -> None:
        """Stop the server and delete its data."""
        assert self._watch.stdin is not None
        self._watch.stdin.close()
        self._watch.wait(timeout=120)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, program: str, *arguments: str) -> None:
        """Run a program of PostgreSQL on the folder of the data."""
        subprocess.run(
            [self.binaries / program, "-D", str(self.folder / "data"), *arguments],
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            timeout=120,
            env=self._environment,
            **self.account(),
        )

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        self.run("pg_ctl", "-w", "-l", str(self.folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: `fast` in order, `immediate` as in a crash."""
        self.run("pg_ctl", "-w", "-m", mode, "stop")

    def see_to_it_that_it_runs(self) -> None:
        """Start the server if a test has left it stopped."""
        if not (self.folder / "data" / "postmaster.pid").exists():
            self.start()

    @property
    def pid(self) -> int:
        """The process id of the server's main process."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    @property
    def socket(self) -> str:
        return str(self.folder / ".s.PGSQL.5432")

    def url(self, database: str, *, host: str = "", user: str = "postgres") -> str:
        """Return the URL of a database; `host` is this server's socket unless given."""
        at = host or str(self.folder).replace("/", "%2F")
        return f"postgresql://{user}:{PASSWORD}@{at}/{database}"

    def database(self) -> str:
        """Create an empty database; return its name."""
        name = f"store{next(_names)}"
        in_a_thread(self.sql(f"CREATE DATABASE {name}"))
        return name

    def database_of_a_store(self) -> str:
        """Create a database with the schema of a store that is new; return its name.

        It is a copy of one that is made by the first call: to make the schema takes three times as
        long as to copy it.
        """
        if not self._new_store:
            self._new_store.append(self.database())
            in_a_thread(self._make_schema(self._new_store[0]))
        name = f"store{next(_names)}"
        in_a_thread(self.sql(f"CREATE DATABASE {name} TEMPLATE {self._new_store[0]}"))
        return name

    async def _make_schema(self, database: str) -> None:
        store = PostgresStore(self.url(database))
        await store.open()
        await store.close()

    async def sql(self, text: str, *arguments: object, database: str = "postgres") -> Any:
        """Return the rows of a statement, executed in a session of its own."""
        session = await asyncpg.connect(self.url(database))
        try:
            return await session.fetch(text, *arguments)
        finally:
            await session.close()


def in_a_thread(work: Coroutine[object, object, T]) -> T:
    """Return the result of `work`, for callers whose thread runs an event loop already."""
    results: list[T] = []

    def run() -> None:
        results.append(asyncio.run(work))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


def server(purpose: str = "") -> Server:
    """Return the server of this process for `purpose`; skip the test if no server is installed.

    In CI, fail instead. Tests that crash the server need one of their own, with few databases:
    after a crash PostgreSQL syncs every file, 300 of each database, before it accepts connections.
    """
    if purpose not in _running:
        found = binaries()
        if found is None:
            missing = f"no PostgreSQL {OLDEST} or newer: neither initdb on the path nor Debian's"
            if os.environ.get("CI") == "true":
                pytest.fail(missing)
            pytest.skip(missing)
        folder = Path(tempfile.mkdtemp(prefix="pg"))
        _running[purpose] = Server(folder, found)
    return _running[purpose]


def stop_servers() -> None:
    """Stop the servers of this process, and delete their data."""
    while _running:
        _, running = _running.popitem()
        running.remove()
