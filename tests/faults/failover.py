"""F17: a group of brokers on one PostgreSQL, of which one leads.

A trigger in the database notes the epoch and number of every commit: the oracle of who led when.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from typer.testing import CliRunner

from broker.cli.application import application
from storage.sql.postgresql.leadership import member_name
from storage.sql.postgresql.lock import HOLDER
from tests.faults.client import Client
from tests.faults.links import is_accepted
from tests.faults.producer import Producer, drained
from tests.faults.server import Place, Server
from tests.faults.workload import GONE, encoded
from tests.interop.broker_process import from_checkout
from tests.support import postgres
from tests.support.ports import free_port
from tests.support.postgres_proxy import Proxy

SILENCE_MS: Final = 3000
GRACE_MS: Final = 4000

SHORT_MS: Final = 1000
"""The shortest silence that a group may have, for tests that take long enough anyway."""

HOLD_MS: Final = 2
LONG_HOLD_MS: Final = 1000
"""Waits of messages for their consumers: the usual one, and the longest one."""

NAMES: Final = ("one", "two", "three")

PATIENCE_S: Final = 30.0

ENDED: Final = (ConnectionError, asyncio.IncompleteReadError)
"""Errors of a client whose connection a former leader has ended."""

BUSY_MS: Final = 3000
"""Milliseconds by which another program of the machine may delay anything here."""

WITNESS: Final = b"jms-broker witness"
MEMBER: Final = b"jms-broker/"
"""Beginnings of the names of a leader's two sessions; the second one has the lock."""

IN_TRANSACTION: Final = b"BEGIN; "
IN_COPY: Final = b"COPY "
"""Beginnings of a transaction and of a COPY, as a leader sends them."""

LOOK_S: Final = 0.01

ORACLE: Final = """
DO $do$ BEGIN
    IF to_regclass('told') IS NULL THEN
        CREATE TABLE told (id serial PRIMARY KEY, epoch bigint, number bigint);
        CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO told (epoch, number) VALUES (NEW.epoch, NEW.value);
            RETURN NEW;
        END $$;
        CREATE TRIGGER tell AFTER UPDATE ON mark FOR EACH ROW WHEN (NEW.name = 'commits')
        EXECUTE FUNCTION tell();
    END IF;
END $do$
"""
"""Makes the oracle unless it is there."""


class Members:
    """Brokers of a group, each of which reaches the database by a proxy of its own.

    A leader is replaced after a silence of `silence_ms`; one without the database drops its clients
    after `grace_ms`. A message may wait `hold_ms` for its consumer before it is written.
    """

    def __init__(
        self,
        folder: Path,
        server: postgres.Server,
        database: str,
        *,
        silence_ms: int = SILENCE_MS,
        grace_ms: int = GRACE_MS,
        hold_ms: int = HOLD_MS,
        compiled: bool | None = None,
    ) -> None:
        self._folder: Final = folder
        self._server: Final = server
        self._database: Final = database
        self.silence_ms: Final = silence_ms
        self.grace_ms: Final = grace_ms
        self._hold_ms: Final = hold_ms
        self._compiled: Final = not from_checkout() if compiled is None else compiled
        self.members: Final[list[Server]] = []
        self.sessions: Final[dict[Server, Proxy]] = {}
        """The proxies by which the members reach the database."""
        self.http: Final[dict[Server, str]] = {}
        """The HTTP URLs of the members."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in self.members:
            await member.close()
        for proxy in self.sessions.values():
            await proxy.__aexit__()

    async def start(self, size: int = 2, *, urls: Sequence[str] = ()) -> list[Server]:
        """Start `size` members at once, with the oracle; return the leader and the standbys.

        With `urls`, start a member for each, without a proxy.
        """
        for name, url in zip(NAMES, urls or [""] * size, strict=False):
            await self.add(name, url)
        for member in self.members:
            await member.launch()
        return await self.started()

    async def started(self) -> list[Server]:
        """Wait until one of the members leads and the others stand by; return them, it first.

        The oracle is there then.
        """
        async with asyncio.timeout(PATIENCE_S):
            while not (leading := [each for each in self.members if each.leads]):  # noqa: ASYNC110
                await asyncio.sleep(LOOK_S)
        [leader] = leading
        await self.note_commits()
        standbys = [each for each in self.members if each is not leader]
        for standby in standbys:
            await stands_by(standby)
        return [leader, *standbys]

    async def add(self, name: str, url: str = "", *, bind: str = "127.0.0.1") -> Server:
        """Return a member that is not started yet. With a URL, it has no proxy."""
        proxy = Proxy(self._server)
        if not url:
            await proxy.listen(0)
            url = proxy.url(self._database)
        made = self._member(name, url, bind)
        self.sessions[made] = proxy
        return made

    def _member(self, name: str, url: str, bind: str) -> Server:
        folder = self._folder / name
        folder.mkdir()
        port, http = free_port(), free_port()
        settings = f"""bind = "{bind}"
allow_anonymous = true
hold_ms = {self._hold_ms}
[ha]
enabled = true
name = "{name}"
advertise = {{ amqp = "127.0.0.1:{port}" }}
silence_ms = {self.silence_ms}
client_grace_ms = {self.grace_ms}
[http]
port = {http}
"""
        place = Place(folder, store=url, settings=settings, port=port, compiled=self._compiled)
        made = Server(place)
        made.port = port
        self.http[made] = f"http://127.0.0.1:{http}"
        self.members.append(made)
        return made

    async def restart_from(self, member: Server, sources: Path) -> Server:
        """Stop a member and start it with the program in `sources`; return it as it is then.

        Another one leads then.
        """
        assert await member.stop() == 0
        made = Server(replace(member.place, sources=sources))
        self.members[self.members.index(member)] = made
        self.sessions[made], self.http[made] = self.sessions.pop(member), self.http.pop(member)
        made.port = member.port
        await made.launch()
        await stands_by(made)
        return made

    async def accepting(
        self, address: str = "probe", *, out: Collection[Server] = ()
    ) -> Server | None:
        """Return a member that accepts a message, None if none does; do not try the members `out`.

        Raise TimeoutError if a member does not answer.
        """
        for member in self.members:
            if member in out or not member.running:
                continue
            with suppress(*GONE):
                async with Client(member.port, "probe") as client:
                    sender = await client.sender(address)
                    await sender.room()
                    if is_accepted(await (await sender.send(encoded("probe.0", b"", 4)))):
                        return member
        return None

    async def hand_over(self, leader: Server) -> str:
        """Have another member lead, as an operator does; return what the command has printed.

        The leader is asked before until it knows where another member is.
        """
        async with asyncio.timeout(PATIENCE_S):
            while await self._places_up(leader) < 2:
                pass
        return await asyncio.to_thread(self._cluster, leader, "switch")

    async def _places_up(self, leader: Server) -> int:
        """Return how many members are up, as the leader knows it, whose addresses it knows."""
        listed = await asyncio.to_thread(self._cluster, leader, "list", "--json")
        found = [json.loads(line) for line in listed.splitlines()]
        return len([1 for each in found if each["up"] and each["urls"]])

    def _cluster(self, leader: Server, *arguments: str) -> str:
        """Return what a command prints that asks the leader, by HTTP; RuntimeError if it fails."""
        asked = ["cluster", *arguments, "--url", self.http[leader]]
        done = CliRunner().invoke(application, asked, catch_exceptions=False)
        if done.exit_code:
            raise RuntimeError(done.stderr)
        return done.stdout

    async def note_commits(self) -> None:
        """Have the database note all commits from now on."""
        await self._server.sql(ORACLE, database=self._database)

    async def lock_holder(self) -> str:
        """Return the name of the member whose session has the lock, empty if none has it."""
        rows = await self._server.sql(HOLDER, database=self._database)
        return member_name(rows[0]["application_name"] or "") if rows else ""

    async def lock_process(self) -> int:
        """Return the process id of the server for the session that has the lock."""
        rows = await self._server.sql(HOLDER, database=self._database)
        return int(rows[0]["pid"])

    async def check_commits(self, server: postgres.Server | None = None) -> None:
        """Check that no commit of an epoch follows one of a later epoch, and that none is missing.

        A number may come twice: by a transaction that only checks the epoch. `server` has replaced
        the group's server, if it is given.
        """
        found = await self.commits(server)
        assert found == sorted(found), "commits of two epochs alternate"
        numbers = sorted({number for _, number in found})
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), "a number is missing"

    async def commits(self, server: postgres.Server | None = None) -> list[tuple[int, int]]:
        """Return epoch and number of all commits, in their order."""
        rows = await (server or self._server).sql(
            "SELECT epoch, number FROM told ORDER BY id", database=self._database
        )
        return [(row["epoch"], row["number"]) for row in rows]


async def stands_by(member: Server) -> None:
    """Wait until a member says that another one leads."""
    async with asyncio.timeout(PATIENCE_S):
        await member.stands_by.wait()


async def is_cut_off(producing: asyncio.Task[None]) -> None:
    """Check that a producer's connection ends within PATIENCE_S."""
    # a task that reads all the time may miss a cancellation, so it is not cancelled
    await asyncio.wait([producing], timeout=PATIENCE_S)
    assert producing.done(), "the former leader still answers"
    assert isinstance(producing.exception(), ENDED)


async def everything_is_there(port: int, producer: Producer, *, address: str = "q") -> None:
    """Check that each accepted message is there, in order and once."""
    held = await drained(port, address, len(producer.accepted))
    assert set(producer.accepted) <= set(held), "an accepted message is lost"
    assert held == sorted(set(held)), "order, and each once"
