"""Cases and their results; each case runs on connections of its own, one after another."""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from .conversation import Conversation, connected
from .logins import PAUSES_S, TryLaterError, pause
from .steps import connected_session, waiting
from .verdict import Failed, Kind, NotApplicable, Options, Verdict

Run = Callable[[Conversation], Awaitable[None]]

CORE: Final = "core"
RELIABILITY: Final = "reliability"

CASE_LIMIT_S: Final = 60.0
"""Maximum seconds per case, even if the broker sends frames all the time."""


@dataclass(frozen=True)
class Case:
    """A test of one rule: its source, the rule in one sentence, and the conversation."""

    name: str
    source: str
    clause: str
    sentence: str
    run: Run


@dataclass(frozen=True)
class Result:
    """The verdict on one case; `conversation` has a line for each frame, whatever the verdict.

    `expected` and `got` are those of a failed case, `reason` and `kind` those of one that is not
    applicable.
    """

    case: Case
    verdict: Verdict
    seconds: float
    conversation: list[str]
    expected: str = ""
    got: str = ""
    reason: str = ""
    kind: Kind | None = None


def case(source: str, clause: str, sentence: str) -> Callable[[Run], Case]:
    """Make a case of a coroutine function, under its name; it gets a connected `Conversation`."""

    def make(run: Run) -> Case:
        return Case(run.__name__, source, clause, sentence, run)

    return make


def all_cases() -> list[Case]:
    """Return every case of every module of this package, by module and in the order of definition.

    Those on reliability come last: their effects on a weak broker would spoil the others.
    """
    found = [
        held
        for module in _modules()
        for held in vars(module).values()
        if isinstance(held, Case) and held.run.__module__ == module.__name__
    ]
    return sorted(found, key=lambda each: each.source == RELIABILITY)


def _modules() -> Iterator[ModuleType]:
    package = __name__.rpartition(".")[0]
    for found in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not found.name.startswith("test_") and found.name != "conftest":
            yield importlib.import_module(f"{package}.{found.name}")


def chosen(cases: list[Case], clause: str | None, name: str | None) -> list[Case]:
    """Return the cases of a clause and those below it (2.6 has 2.6.3), or those called `name`.

    A clause of core is its number alone; others have their source before it: jms:13.
    """
    source, _, number = (clause or "").rpartition(":")
    return [
        each
        for each in cases
        if (clause is None or (each.source == (source or CORE) and _within(each.clause, number)))
        and (name is None or each.name == name)
    ]


def _within(clause: str, outer: str) -> bool:
    return not outer or clause == outer or clause.startswith(f"{outer}.")


async def judge(each: Case, options: Options) -> Result:
    """Run one case; return its result."""
    lines: list[str] = []
    address = options.address or f"conformance.{os.urandom(6).hex()}"
    start = time.monotonic()

    def result(verdict: Verdict, *, kind: Kind | None = None, **why: str) -> Result:
        return Result(each, verdict, time.monotonic() - start, lines, kind=kind, **why)

    try:
        async with asyncio.timeout(CASE_LIMIT_S):
            if options.address is not None:
                await _emptied(options, address)
            await _converse(each, options, address, lines=lines)
    except TryLaterError:
        return result(Verdict.FAILED, expected="a login", got="the outcome sys-temp (4), always")
    except Failed as failed:
        return result(Verdict.FAILED, expected=failed.expected, got=failed.got)
    except NotApplicable as untried:
        if options.strict_jms and untried.kind is Kind.IGNORED:
            return result(Verdict.FAILED, expected=each.sentence, got=untried.reason)
        return result(Verdict.NOT_APPLICABLE, reason=untried.reason, kind=untried.kind)
    except OSError as error:
        return result(Verdict.FAILED, expected="a connection", got=str(error) or repr(error))
    except Exception:  # noqa: BLE001 - whatever the error is, the other cases must run
        return result(
            Verdict.FAILED, expected="a harness that works", got=traceback.format_exc(limit=-4)
        )
    return result(Verdict.PASSED)


async def _converse(each: Case, options: Options, address: str, *, lines: list[str]) -> None:
    """Run a case; again after a pause if the broker asks to log in later."""
    for pause_s in PAUSES_S:
        try:
            async with connected(options, address=address, lines=lines) as peer:
                await each.run(peer)
        except TryLaterError:
            lines.append(f"the broker asks to try again later: {pause_s:g} s")
            await pause(pause_s)
        else:
            return
    raise TryLaterError


async def _emptied(options: Options, address: str) -> None:
    """Remove the messages that another case has left in the user's queue."""
    async with connected(options, address=address, lines=[], name="emptying ") as peer:
        session = await connected_session(peer)
        while await waiting(session):
            continue
        await peer.close()


async def judge_all(
    cases: list[Case], options: Options, told: Callable[[Result], None]
) -> list[Result]:
    """Run cases one after another; `told` is called with each result at once."""
    results = []
    for each in cases:
        results.append(await judge(each, options))
        told(results[-1])
    return results
