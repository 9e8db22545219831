"""Servers that follow another PostgreSQL server: a standby server, and a receiver of its log."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.support.postgres import SMALL, Server

ANY: Final = "ANY 1 (*)"
"""A value of synchronous_standby_names: commits wait for one server, whichever it is."""

PROMPT: Final = "wal_retrieve_retry_interval = 100ms\n"

FOLLOWERS: Final = (
    "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state <> 'async'"
)


class Replica(Server):
    """A standby server of `primary`, until it is promoted. Close it by `remove`.

    It follows by the TCP port `port` of this machine, if that is given: a proxy. Once it is
    promoted, its commits wait for `followers`.
    """

    def __init__(self, primary: Server, *, port: int = 0, followers: str = "") -> None:
        self._primary: Final = primary
        self._port: Final = port
        self._followers: Final = followers
        folder = Path(tempfile.mkdtemp(prefix="pg"))
        super().__init__(folder, primary.binaries, settings=SMALL + PROMPT)

    def make(self) -> None:
        """Copy the primary, without the proxy, which takes longer."""
        place = str(self._primary.folder)
        self.run("pg_basebackup", "-h", place, "-U", "postgres", "-c", "fast", "-N", "-R", "-w")
        # over what ALTER SYSTEM has set on the primary
        with (self.folder / "data" / "postgresql.auto.conf").open("a") as config:
            config.write(f"synchronous_standby_names = '{self._followers}'\n")
            if self._port:
                at = f"host=127.0.0.1 port={self._port} user=postgres"
                config.write(f"primary_conninfo = '{at}'\n")

    def promote(self) -> None:
        """Make it a primary, and wait until it is."""
        self.run("pg_ctl", "-w", "promote")


class LogReceiver:
    """A program that receives the log of `server`, and syncs it: a commit may wait for it."""

    def __init__(self, server: Server) -> None:
        self._folder: Final = Path(tempfile.mkdtemp(prefix="pg"))
        account = server.account()
        if account:
            shutil.chown(self._folder, account["user"])
        program, place = str(server.binaries / "pg_receivewal"), str(server.folder)
        command = [program, "-h", place, "-U", "postgres", "-D", str(self._folder)]
        self._process: Final = subprocess.Popen(
            [*command, "--synchronous", "--no-loop"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **account,
        )

    def pause(self) -> None:
        """Stop the process: commits wait."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Kill the process, and delete what it has received."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)


async def set_followers(server: Server, names: str) -> None:
    """Have the commits of a server wait for the standby servers `names`, for none if it is empty.

    Return once new sessions know it.
    """
    await server.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    await server.sql("SELECT pg_reload_conf()")
    while (await server.sql("SHOW synchronous_standby_names"))[0][0] != names:
        pass


async def is_followed(server: Server) -> None:
    """Wait until a standby server follows, for which commits wait."""
    while not (await server.sql(FOLLOWERS))[0]["count"]:
        pass


def url_of_both(first: Server, second: Server, database: str) -> str:
    """Return the URL of a database on two servers."""
    other = second.url(database).rpartition("@")[2].partition("/")[0]
    place, _, name = first.url(database).rpartition("/")
    return f"{place},{other}/{name}"
