"""F17: a group of two brokers on one PostgreSQL, and the faults of its leader.

A trigger in the database notes the epoch and number of every commit: the oracle of who led when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from tests.faults.server import Place, Server
from tests.support import postgres
from tests.support.ports import free_port

SILENCE_MS: Final = 3000
GRACE_MS: Final = 4000

SETTINGS: Final = f"""
[ha]
enabled = true
silence_ms = {SILENCE_MS}
client_grace_ms = {GRACE_MS}
"""

ORACLE: Final = (
    "CREATE TABLE told (id serial PRIMARY KEY, epoch bigint, number bigint)",
    """CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO told (epoch, number) VALUES (NEW.epoch, NEW.value);
        RETURN NEW;
    END $$""",
    """CREATE TRIGGER tell AFTER UPDATE ON mark FOR EACH ROW WHEN (NEW.name = 'commits')
    EXECUTE FUNCTION tell()""",
)


class Pair:
    """Two brokers of a group, the first of which leads at the start.

    `urls` are those of the database as each broker reaches it: by a proxy perhaps.
    """

    def __init__(self, folder: Path, server: postgres.Server, database: str) -> None:
        self._folder: Final = folder
        self._server: Final = server
        self._database: Final = database
        self.members: Final[list[Server]] = []
        self.http: Final[dict[Server, str]] = {}
        """The HTTP URLs of the members."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for member in self.members:
            await member.close()

    async def start(self, urls: Sequence[str] = ()) -> tuple[Server, Server]:
        """Start both, with the oracle; return the leader and the standby."""
        direct = self._server.url(self._database)
        first, second = urls or (direct, direct)
        leader = self._member("one", first)
        await leader.start()
        for statement in ORACLE:
            await self._server.sql(statement, database=self._database)
        standby = self._member("two", second)
        await standby.launch()
        async with asyncio.timeout(30):
            await standby.stands_by.wait()
        return leader, standby

    def _member(self, name: str, url: str) -> Server:
        folder = self._folder / name
        folder.mkdir()
        port = free_port()
        settings = f'{SETTINGS}name = "{name}"\nadvertise = {{ amqp = "127.0.0.1:{port}" }}\n'
        http = free_port()
        settings += f"[http]\nport = {http}\n"
        made = Server(Place(folder, store=url, settings=settings, port=port))
        made.port = port
        self.http[made] = f"http://127.0.0.1:{http}"
        self.members.append(made)
        return made

    async def check_commits(self) -> None:
        """Check that no commit of an epoch follows one of a later epoch, and that none is missing.

        A number may come twice: by a transaction that only checks the epoch.
        """
        rows = await self._server.sql(
            "SELECT epoch, number FROM told ORDER BY id", database=self._database
        )
        found = [(row["epoch"], row["number"]) for row in rows]
        assert found == sorted(found), "commits of two epochs alternate"
        numbers = sorted({number for _, number in found})
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), "a number is missing"
