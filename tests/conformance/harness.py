"""Cases and their results; each case runs on connections of its own, one after another."""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
import time
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar

from .conversation import Conversation, connected
from .logins import PAUSES_S, TryLaterError, pause
from .restart import COMMAND_S, READY_S
from .steps import connected_session, waiting
from .verdict import Failed, Kind, NotApplicable, Options, Verdict

Run = Callable[[Conversation], Awaitable[None]]

CORE: Final = "core"
RELIABILITY: Final = "reliability"

CASE_LIMIT_S: Final = 60.0
"""Maximum seconds per case, even if the broker sends frames all the time."""

RESTARTING_LIMIT_S: Final = CASE_LIMIT_S + COMMAND_S + READY_S
"""Maximum seconds per case of a run in which cases may restart the broker."""


@dataclass(frozen=True)
class Rule:
    """A rule of a specification: its source, its clause, and what it demands in one sentence."""

    name: str
    source: str
    clause: str
    sentence: str


AnyRule = TypeVar("AnyRule", bound=Rule)


@dataclass(frozen=True)
class Case(Rule):
    """A test of one rule, whose name it has: the conversation with the broker."""

    run: Run


@dataclass(frozen=True)
class Result:
    """The verdict on one case; `conversation` has a line for each frame, whatever the verdict.

    `expected` and `got` are those of a failed case, `reason` and `kind` those of one that is not
    applicable. `known` is the reason why the user expects a failure. `is_unreachable` is whether no
    connection was made, `died` whether the broker ended during the case.
    """

    case: Rule
    verdict: Verdict
    seconds: float
    conversation: list[str]
    expected: str = ""
    got: str = ""
    reason: str = ""
    kind: Kind | None = None
    known: str = ""
    died: bool = False
    is_unreachable: bool = False


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


def chosen(
    cases: list[AnyRule], clauses: Collection[str] = (), names: Collection[str] = ()
) -> list[AnyRule]:
    """Return the cases of `clauses` and those below them (2.6 has 2.6.3), and those of `names`.

    All are chosen if neither is given. A clause of core is its number alone; others have their
    source before it: jms:13.
    """
    if not clauses and not names:
        return cases
    return [
        each
        for each in cases
        if each.name in names or any(is_of(each, clause) for clause in clauses)
    ]


def is_of(each: Rule, clause: str) -> bool:
    """Return whether a rule is of `clause`, such as 2.6 or jms:13, or of one below it."""
    source, _, number = clause.rpartition(":")
    return each.source == (source or CORE) and _within(each.clause, number)


def _within(clause: str, outer: str) -> bool:
    return not outer or clause == outer or clause.startswith(f"{outer}.")


async def judge(each: Case, options: Options) -> Result:
    """Run one case; return its result."""
    lines: list[str] = []
    name = options.address or f"conformance.{os.urandom(6).hex()}"
    start = time.monotonic()

    def result(verdict: Verdict, *, reason: str = "", kind: Kind | None = None) -> Result:
        return Result(each, verdict, time.monotonic() - start, lines, reason=reason, kind=kind)

    def failed(expected: str, got: str) -> Result:
        found = result(Verdict.FAILED)
        return replace(found, expected=expected, got=got, is_unreachable=not lines)

    limit_s = CASE_LIMIT_S if options.restart is None else RESTARTING_LIMIT_S
    limit = asyncio.timeout(limit_s)
    try:
        async with limit:
            if options.address is not None:
                await _emptied(options, options.address)
            await _converse(each, options, name, lines=lines)
    except TryLaterError:
        return failed("a login", "the outcome sys-temp (4), always")
    except Failed as broken:
        return failed(broken.expected, broken.got)
    except NotApplicable as untried:
        if options.strict_jms and untried.kind is Kind.IGNORED:
            return failed(each.sentence, untried.reason)
        return result(Verdict.NOT_APPLICABLE, reason=untried.reason, kind=untried.kind)
    except OSError as error:
        if limit.expired():
            return failed(
                f"an end within {limit_s:g} s", f"the case took longer than {limit_s:g} s"
            )
        return failed("a connection", str(error) or repr(error))
    except Exception:  # noqa: BLE001 - whatever the error is, the other cases must run
        return failed("a harness that works", traceback.format_exc(limit=-4))
    return result(Verdict.PASSED)


async def _converse(each: Case, options: Options, name: str, *, lines: list[str]) -> None:
    """Run a case, whose addresses have `name`; again after a pause if the broker asks for one."""
    address = options.address or options.queue_address(name)
    for pause_s in PAUSES_S:
        try:
            async with connected(options, address=address, lines=lines, unique=name) as peer:
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
