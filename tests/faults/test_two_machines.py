"""The example of the page on high availability: two machines and their database, step by step.

The machines are two addresses of the loopback network; else the settings are those of the page.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner, Result

from broker.cli.application import application
from tests.docs.page import blocks
from tests.faults.server import Place, Server
from tests.support import postgres
from tests.support.ports import free_port

PAGE: Final = Path(__file__).parents[2] / "docs" / "operations" / "high-availability.md"
ADDRESSES: Final = {"a": "127.0.0.2", "b": "127.0.0.3"}
USER: Final = {"JMS_BROKER_USER": "ada", "JMS_BROKER_PASSWORD": "sesame"}
ADA: Final = "ada:sesame"
BOB: Final = "bob:tulip"
"""Users, with their passwords."""


@dataclass
class Machine:
    """One of the machines of the page, on which a broker is run."""

    name: str
    port: int
    server: Server

    async def command(self, *arguments: str, login: str = ADA, typed: str = "") -> Result:
        """Return what a command has done that asks the broker of this machine.

        `login` is a user and its password, `typed` what the user types.
        """
        url = f"amqp://{login}@{ADDRESSES[self.name]}:{self.port}"
        asked = partial(CliRunner().invoke, application, [*arguments, "--url", url], input=typed)
        return await asyncio.to_thread(asked)


def settings_of(name: str) -> str:
    """Return the settings file that the page has for one of the machines."""
    titles = {block.title: block.text for block in blocks(PAGE.read_text())}
    return titles[f"broker.toml on {name}"]


def machine(folder: Path, name: str, store: str) -> Machine:
    place = folder / name
    place.mkdir()
    port = free_port()
    settings = settings_of(name)
    for named, meant in (
        ("postgresql://jms-broker@db.example.com/jms", store),
        ("0.0.0.0", ADDRESSES[name]),
        (f"{name}.example.com:5672", f"{ADDRESSES[name]}:{port}"),
    ):
        assert named in settings
        settings = settings.replace(named, meant)
    server = Server(Place(place, store=store, settings=settings, port=port, variables=USER))
    return Machine(name, port, server)


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[tuple[Machine, Machine]]:
    database = postgres.server()
    store = database.url(database.database())
    found = machine(tmp_path, "a", store), machine(tmp_path, "b", store)
    yield found
    for each in found:
        await each.server.close()


async def members(leader: Machine) -> list[tuple[str, bool]]:
    """Return the names of the members that are up, and whether each of them leads."""
    done = await leader.command("cluster", "list", "--json")
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [(each["name"], each["leads"]) for each in found if each["up"]]


async def both_are_listed(leader: Machine, expected: list[tuple[str, bool]]) -> None:
    """Wait until the leader knows of the other member: it asks every second."""
    async with asyncio.timeout(20):
        while await members(leader) != expected:
            pass


@pytest.mark.requirement("PRD-03")
async def test_the_example_of_the_page(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    await a.server.start()
    await b.server.launch()
    async with asyncio.timeout(30):
        await b.server.stands_by.wait()
    assert "standby of a" in b.server.lines
    await both_are_listed(a, [("a", True), ("b", False)])
    assert (await a.command("send", "orders", "first")).exit_code == 0
    asked_too_early = await b.command("cluster", "list")
    assert asked_too_early.exit_code == 5
    assert asked_too_early.stderr.endswith(f"a leads at 127.0.0.2:{a.port}\n")
    added = await a.command("user", "add", "bob", "--role", "application", typed="tulip\ntulip\n")
    assert "added bob to the store of the broker" in added.stdout, added.output

    os.kill(a.server.pid, signal.SIGKILL)
    await b.server.ready()
    received = await b.command("receive", "orders", "--count", "1", login=BOB)
    assert (received.exit_code, received.stdout) == (0, "first\n")

    await a.server.wait()
    await a.server.launch()
    async with asyncio.timeout(30):
        await a.server.stands_by.wait()
    await both_are_listed(b, [("a", False), ("b", True)])
    switched = await b.command("cluster", "switch", "a")
    assert (switched.exit_code, switched.stdout) == (0, "a takes over\n")
    await a.server.ready()
