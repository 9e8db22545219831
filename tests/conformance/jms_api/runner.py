"""A run of the suite: a JVM judges the rules one after another, and tells each result in a line."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final

from ..harness import Result
from ..identity import place_of
from ..progress import Silent, Watcher
from ..restart import answers
from ..running import Revival, killing, not_run
from ..verdict import Kind, Options, Verdict
from .catalogue import JmsRule

MORE_S: Final = 30.0
"""Seconds that a line may take beyond a test: the JVM starts, and connections are closed."""

EXTRA_S: Final = 5.0
"""Seconds that a test may take beyond the wait for one answer."""

LINE_BYTES: Final = 2**20
"""Maximum bytes of a line with a result; the suite limits the frames that it has."""

ERROR_CHARACTERS: Final = 2_000
"""Maximum characters that are shown of what a JVM printed before it ended: the last ones."""


@dataclass(frozen=True)
class JmsRun:
    """The needs of a run of the suite beside the options of each case.

    `command` runs the suite (`java_command`). `ca`, `cert` and `key` are PEM files for TLS. The
    frames of the rules in `named` are kept, even if they pass.
    """

    command: Sequence[str] = ()
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    named: Collection[str] = ()


async def judge_jms(
    rules: list[JmsRule], options: Options, run: JmsRun, watcher: Watcher | None = None
) -> list[Result]:
    """Judge the rules; return a result for each, in their order.

    If the broker dies and does not come back, the remaining rules are "not run".
    """
    watching = watcher or Silent()
    revival = Revival(options, watching, can_die=await answers(options))
    found: dict[str, Result] = {}
    left = rules
    while left:
        killer: Result | None = None
        async with _results(left, options, run) as results:
            async for result in results:
                is_alive = result.verdict is not Verdict.FAILED or not await revival.is_dead()
                judged = result if is_alive else killing(result)
                found[judged.case.name] = judged
                watching.judged(judged)
                if not is_alive:
                    killer = judged
                    break
        left = [rule for rule in left if rule.name not in found]
        if killer is not None and not await revival.revived(killer):
            found |= {each.case.name: each for each in not_run(left, revival.killer)}
            break
    return [found[rule.name] for rule in rules]


@asynccontextmanager
async def _results(
    rules: list[JmsRule], options: Options, run: JmsRun
) -> AsyncIterator[AsyncGenerator[Result, None]]:
    """Run a JVM, and give its results; it is killed at the end if it has not ended."""
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *run.command,
            *(rule.method for rule in rules),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=os.environ | variables(options, run),
            limit=LINE_BYTES,
        )
        assert process.stdout is not None
        try:
            left = {rule.method: rule for rule in rules}
            async with aclosing(_read(process.stdout, errors, left, options, run)) as results:
                yield results
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _read(
    lines: asyncio.StreamReader,
    errors: IO[bytes],
    left: dict[str, JmsRule],
    options: Options,
    run: JmsRun,
) -> AsyncGenerator[Result, None]:
    """Give a result for each of `left`.

    Those of which the JVM tells nothing have failed: it ended, it hangs, or a line of it is no
    result, after which nothing is sure of the others.
    """
    limit_s = options.timeout_s + EXTRA_S + MORE_S
    end = "the JVM ended"
    while left:
        try:
            async with asyncio.timeout(limit_s):
                line = await lines.readline()
        except TimeoutError:
            end = f"the JVM told nothing for {limit_s:g} s"
            break
        except ValueError:
            end = f"the JVM told a line of more than {LINE_BYTES} bytes"
            break
        if not line:
            break
        if not line.startswith(b"{"):
            continue
        try:
            method, result = _result_in(line, left, options, run.named)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            end = f"the JVM told a line that is no result of a rule: {error!r}"
            break
        del left[method]
        yield result
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - ERROR_CHARACTERS))
    printed = errors.read().decode(errors="replace").strip()
    for rule in left.values():
        failed = Result(rule, Verdict.FAILED, 0.0, [])
        yield replace(failed, expected="a suite that runs", got=f"{end}: {printed}")


def _result_in(
    line: bytes, left: Mapping[str, JmsRule], options: Options, named: Collection[str]
) -> tuple[str, Result]:
    """Return the method and the result that a line tells of one of `left`.

    Raise ValueError, KeyError, TypeError or RecursionError if it tells none.
    """
    told = json.loads(line)
    method = told["name"]
    return method, result_of(left[method], told, options, named)


def result_of(
    rule: JmsRule, told: Mapping[str, object], options: Options, named: Collection[str] = ()
) -> Result:
    """Return the result that a line of the suite tells.

    The frames are those of a test that failed, or that the user named: the others would make a
    report many times larger. Raise ValueError, KeyError or TypeError for another form of line.
    """
    verdict, reason = Verdict(told["verdict"]), str(told["reason"])
    kind = Kind[str(told["kind"])] if told["kind"] else None
    expected, got = str(told["expected"]), str(told["got"])
    if kind is Kind.IGNORED and options.strict_jms:
        verdict, kind, expected, got, reason = Verdict.FAILED, None, rule.sentence, reason, ""
    keeps = verdict is Verdict.FAILED or rule.name in named
    log = told["log"]
    if not isinstance(log, list):
        raise TypeError(f"log={log!r}")
    is_failed = verdict is Verdict.FAILED
    return Result(
        case=rule,
        verdict=verdict,
        seconds=float(str(told["ms"])) / 1000,
        conversation=[str(line) for line in log] if keeps else [],
        expected=expected if is_failed else "",
        got=got if is_failed else "",
        reason=reason,
        kind=kind,
    )


def variables(options: Options, run: JmsRun) -> dict[str, str]:
    """Return the environment of the suite; a password is not among the arguments of a process."""
    values = {
        "URL": _url(options),
        "USER": options.user,
        "PASSWORD": options.password,
        "MECHANISM": options.mechanism,
        "QUEUE": options.queue_template,
        "TOPIC": options.topic_template,
        "MISSING": options.missing_address,
        "REJECTING": options.rejecting_address,
        "CA": run.ca,
        "CERT": run.cert,
        "KEY": run.key or run.cert,
        "TIMEOUT_MS": round(options.timeout_s * 1000),
        "LIMIT_MS": round((options.timeout_s + EXTRA_S) * 1000),
    }
    # an empty variable is none; it also hides one that the user's environment has
    return {
        f"JMS_API_{name}": "" if value is None else str(value) for name, value in values.items()
    }


def _url(options: Options) -> str:
    """Return the broker's URL as Qpid JMS writes it."""
    layer = "" if options.websocket is None else "ws"
    encrypted = "" if options.context is None else "s"
    return f"amqp{layer}{encrypted}://{place_of(options)}{options.websocket or ''}"
