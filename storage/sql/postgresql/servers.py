"""The servers that a store's URL names: one of them takes changes, the others are its standbys.

A server that was replaced by its standby takes changes, too, when it comes back. The timeline tells
the two apart, which a promotion begins: the higher one is the later one.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from storage.api import StoreError
from storage.sql.postgresql.postgres import (
    APPLICATION,
    CONNECT_TIMEOUT_S,
    AwayError,
    Place,
    cause_of,
    connect,
)

OTHERS_S: Final = 0.5
"""Seconds that the other servers get to answer once one has said that it takes changes."""

AGAIN_S: Final = 0.2
"""Seconds until a standby is asked again."""

DEFAULT_PORT: Final = 5432

HOST: Final = re.compile(r"(?:\[(?P<six>[^\]]*)\]|(?P<name>[^:]*))(?::(?P<port>\d+))?")

TIMELINE: Final = """
SELECT CASE WHEN pg_is_in_recovery() THEN ''
ELSE pg_walfile_name(pg_current_wal_lsn()) END
"""
"""The name of the file of the log that is written now: its first 8 digits are the timeline. Empty
on a standby."""


def places_of(url: str) -> list[Place]:
    """Return host, or folder of a socket, and port of each server that a URL names."""
    place, _, options = url.partition("://")[2].partition("?")
    chosen = dict(each.partition("=")[::2] for each in options.split("&"))
    named = place.rpartition("@")[2].partition("/")[0] or chosen.get("host", "")
    ports = [int(each) for each in chosen.get("port", "").split(",") if each.isdecimal()]
    default = os.environ.get("PGPORT", "")
    found: list[Place] = []
    for number, text in enumerate(named.split(",")):
        host = unquote(text)
        parts = None if host.startswith("/") else HOST.fullmatch(host)
        port = ports[number % len(ports)] if ports else 0
        if parts is not None:
            host = parts["name"] if parts["six"] is None else parts["six"]
            port = int(parts["port"] or port)
        found.append((host, port or (int(default) if default.isdecimal() else DEFAULT_PORT)))
    return found


async def writable(url: str, tell: Callable[[str], None]) -> Place | None:
    """Return the server of `url` that takes changes; None if the URL names only one.

    All are asked. If several take changes, that is told, and the one that was promoted last is
    returned. Raise AwayError if none does, StoreError if it cannot be told which is right.
    """
    places = places_of(url)
    if len(places) == 1:
        return None
    return chosen(await _answers(url, places), tell)


async def _answers(url: str, places: Sequence[Place]) -> dict[Place, int | str]:
    """Return what the servers at `places` have answered, as `chosen` takes it.

    Wait until each has, or a while after one has said that it takes changes. Until then a standby
    is asked again: it may be promoted, while a server without power takes long not to answer.
    """
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + CONNECT_TIMEOUT_S
    answers: dict[Place, int | str] = {}
    asking = {place: asyncio.create_task(_timeline_of(url, place)) for place in places}
    try:
        while len(answers) < len(places) and (left_s := ends_s - loop.time()) > 0:
            await asyncio.wait(asking.values(), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if _take_answers(url, asking, answers):
                ends_s = min(ends_s, loop.time() + OTHERS_S)
    finally:
        for task in asking.values():
            task.cancel()
        await asyncio.gather(*asking.values(), return_exceptions=True)
    return {place: answers.get(place, "it does not answer") for place in places}


def _take_answers(
    url: str, asking: dict[Place, asyncio.Task[int]], answers: dict[Place, int | str]
) -> bool:
    """Move what has been answered into `answers`; ask standbys again.

    Return whether one of the servers has just said that it takes changes.
    """
    is_found = False
    for place in [place for place, task in asking.items() if task.done()]:
        said = answers[place] = _answer(asking.pop(place))
        if said == 0:
            asking[place] = asyncio.create_task(_timeline_of(url, place, AGAIN_S))
        is_found = is_found or (isinstance(said, int) and said > 0)
    return is_found


async def _timeline_of(url: str, place: Place, pause_s: float = 0.0) -> int:
    """Return the timeline of a server, 0 if it is a standby."""
    await asyncio.sleep(pause_s)
    session = await connect(url, f"{APPLICATION} asks", place=place)
    try:
        return int((await session.fetchval(TIMELINE))[:8] or "0", 16)
    finally:
        session.terminate()


def _answer(task: asyncio.Task[int]) -> int | str:
    """Return the timeline that a server has told, 0 of a standby; or why there is none."""
    error = task.exception()
    return task.result() if error is None else str(cause_of(error)) or type(error).__name__


def chosen(answers: Mapping[Place, int | str], tell: Callable[[str], None]) -> Place:
    """Return the server to use, as `writable` does.

    `answers` are the timelines of servers, 0 of a standby, or why there is no answer.
    """
    found = {place: said for place, said in answers.items() if isinstance(said, int) and said}
    if not found:
        reasons = [f"{_text(place)}: {said or 'a standby'}" for place, said in answers.items()]
        raise AwayError(f"none of its servers takes changes ({'; '.join(reasons)})")
    newest = max(found.values())
    first, *others = [place for place in found if found[place] == newest]
    if others:
        raise StoreError(
            f"the servers {_text(first)} and {_text(others[0])} both take changes, and neither was"
            " promoted later: stop the one that is not to, or name one server in the store's URL"
        )
    older = [_text(place) for place in found if place != first]
    if older:
        tell(
            f"the server {_text(first)} was promoted in place of {', '.join(older)}, which takes"
            " changes, too: stop it, and make it a standby; the store is in the promoted one"
        )
    return first


def _text(place: Place) -> str:
    host, port = place
    return f"{host}:{port}"
