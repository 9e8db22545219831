"""The harness on the command line: its options, progress, reports and exit status."""

from __future__ import annotations

import asyncio
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .harness import Case, Result, all_cases, chosen, judge_all
from .logins import KNOWN
from .report import in_text, totals, write_html, write_junit
from .transport import opened
from .verdict import Options, Verdict

EXIT_FAILED: Final = 1
EXIT_CANNOT: Final = 2

ENCRYPTED: Final = ("amqps", "wss")
WEBSOCKET: Final = ("ws", "wss")
PORTS: Final = {"amqp": 5672, "amqps": 5671, "ws": 5673, "wss": 5674}
"""The port of a URL without one, by its scheme."""


@dataclass(frozen=True)
class Asked:
    """The options of the command."""

    url: str
    user: str | None = None
    password: str | None = None
    clause: str | None = None
    case: str | None = None
    junit: Path | None = None
    html: Path | None = None
    address: str | None = None
    missing_address: str | None = None
    blocking_address: str | None = None
    rejecting_address: str | None = None
    timeout_s: float = 5.0
    context: ssl.SSLContext | None = None
    shows_certificate: bool = False
    mechanism: str | None = None


class CannotRun(Exception):  # noqa: N818 - informs the user
    """There are no cases to run, or no broker to run them against."""


def run(**asked: object) -> int:
    """Run the chosen cases and print their results; return the exit status."""
    wanted = Asked(**asked)  # type: ignore[arg-type]
    try:
        options = options_of(wanted)
        cases = chosen(all_cases(), wanted.clause, wanted.case)
        if not cases:
            raise CannotRun("no case is called so, or belongs to such a clause")
        results = asyncio.run(_run(cases, options))
    except CannotRun as reason:
        print(f"jms-broker: {reason}", file=sys.stderr)
        return EXIT_CANNOT
    for result in results:
        if wanted.case is not None or result.verdict is not Verdict.PASSED:
            failed = result.verdict is Verdict.FAILED
            print(in_text(result, frames=failed or wanted.case is not None))
    print(totals(results))
    broker = f"{options.host}:{options.port}"
    if wanted.junit is not None:
        write_junit(results, wanted.junit, broker=broker)
    if wanted.html is not None:
        write_html(results, wanted.html, broker=broker)
    return EXIT_FAILED if any(each.verdict is Verdict.FAILED for each in results) else 0


def options_of(wanted: Asked) -> Options:
    """Return the broker's address and the options; raise CannotRun if the URL is no address."""
    try:
        parts = urlsplit(wanted.url)
        host, port = parts.hostname, parts.port or PORTS.get(parts.scheme)
    except ValueError as error:
        raise CannotRun(f"{wanted.url}: {error}") from None
    if parts.scheme not in PORTS or host is None or port is None:
        raise CannotRun(
            f"{wanted.url} is not like amqp://HOST:PORT or amqps://HOST:PORT, or ws://HOST:PORT/PATH"
            " or wss://HOST:PORT/PATH"
        )
    if wanted.mechanism is not None and wanted.mechanism not in KNOWN:
        raise CannotRun(f"--mechanism {wanted.mechanism} is none of {', '.join(KNOWN)}")
    user, password = parts.username, parts.password
    context = wanted.context or ssl.create_default_context()
    return Options(
        host=host,
        port=port,
        user=wanted.user if wanted.user is not None or user is None else unquote(user),
        password=(
            wanted.password
            if wanted.password is not None or password is None
            else unquote(password)
        ),
        address=wanted.address,
        missing_address=wanted.missing_address,
        blocking_address=wanted.blocking_address,
        rejecting_address=wanted.rejecting_address,
        timeout_s=wanted.timeout_s,
        context=context if parts.scheme in ENCRYPTED else None,
        shows_certificate=wanted.shows_certificate,
        mechanism=wanted.mechanism,
        websocket=(parts.path or "/") if parts.scheme in WEBSOCKET else None,
    )


async def _run(cases: list[Case], options: Options) -> list[Result]:
    try:
        transport = await opened(options)
    except OSError as error:
        raise CannotRun(f"{options.host}:{options.port}: {str(error) or 'no answer'}") from None
    await transport.close()
    if not sys.stderr.isatty():
        return await judge_all(cases, options, lambda _: None)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("", total=len(cases))
        return await judge_all(
            cases,
            options,
            lambda result: progress.update(
                task, advance=1, description=f"{result.case.source} {result.case.clause}"
            ),
        )
