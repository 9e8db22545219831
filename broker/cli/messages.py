"""`jms-broker send`, `receive` and `browse`: their options and their output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.client_tls import Ca, Cert, Key, chosen_tls
from broker.cli.ending import EXIT_USAGE, errors_told, fail
from broker.cli.shard_option import ShardAsUrl

if TYPE_CHECKING:
    from proton import Message
    from rich.progress import Progress

ANSWER_TIMEOUT_S: Final = 10.0


class Capability(Enum):
    """The kind of node that an address names; without it the broker decides."""

    QUEUE = "queue"
    TOPIC = "topic"


Address = Annotated[str, typer.Argument(help="The queue or topic.", show_default=False)]
Url = Annotated[
    str,
    typer.Option(
        envvar="JMS_BROKER_URL", help="The broker, amqp://USER:PASSWORD@HOST:PORT or amqps://…"
    ),
]
Kind = Annotated[
    Capability | None,
    typer.Option(
        help="The kind of ADDRESS, if a queue and a topic have it, or neither.", show_default=False
    ),
]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Stop after so many messages.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object a message.")]

NOT_UTF_8: Final = " is not UTF-8: send bytes from a file, with --file"

LOCAL: Final = "amqp://127.0.0.1:5672"


def send(
    address: Address,
    text: Annotated[
        list[str] | None, typer.Argument(help="One message each.", show_default=False)
    ] = None,
    url: Url = LOCAL,
    shard: ShardAsUrl = None,  # noqa: ARG001 - it has become the url by now
    file: Annotated[
        list[Path] | None,
        typer.Option(
            help="Send a file as one message: text if it is UTF-8, bytes otherwise.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Send it all so many times.")] = 1,
    capability: Kind = None,
    timeout: Annotated[
        float,
        typer.Option(min=0.001, help="Give up when the broker is silent for so many seconds."),
    ] = ANSWER_TIMEOUT_S,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Send messages: TEXT, files, or a message for each line of standard input."""
    given = len(text or []) + len(file or [])
    if given == 0 and count > 1:
        fail("--count needs TEXT or --file: standard input can be read only once", EXIT_USAGE)
    bodies = _given(text or [], file or [], count) if given else _lines()
    with errors_told(), _progress("sent", given * count or None) as progress:
        from broker.cli.client import send as send_all

        sent = send_all(
            url,
            address,
            bodies,
            capability=capability.value if capability else None,
            timeout_s=timeout,
            confirmed=progress.one,
            tls=chosen_tls(url, ca=ca, cert=cert, key=key),
        )
    typer.echo(f'{{"sent": {sent}}}' if json else f"sent {sent}")


def receive(
    address: Address,
    url: Url = LOCAL,
    shard: ShardAsUrl = None,  # noqa: ARG001 - it has become the url by now
    count: Limit = None,
    capability: Kind = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.001, help="Stop when none has come for so many seconds.", show_default=False
        ),
    ] = None,
    create: Annotated[
        bool,
        typer.Option(
            "--create", help="Create ADDRESS if it does not exist and the broker allows it."
        ),
    ] = False,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    json: Json = False,
) -> None:
    """Take messages from a queue or topic and print them, until --count, --timeout or ^C."""
    with errors_told():
        from broker.cli.client import receive as receive_all

        messages = receive_all(
            url,
            address,
            capability=capability.value if capability else None,
            count=count,
            timeout_s=timeout,
            create=create,
            tls=chosen_tls(url, ca=ca, cert=cert, key=key),
        )
        received = _print_all(messages, as_json=json, expected=count)
    if count is not None and received < count:
        fail(f"received {received} of {count}")


def browse(
    address: Address,
    url: Url = LOCAL,
    shard: ShardAsUrl = None,  # noqa: ARG001 - it has become the url by now
    count: Limit = None,
    capability: Kind = None,
    timeout: Annotated[
        float,
        typer.Option(min=0.001, help="Give up when the broker is silent for so many seconds."),
    ] = ANSWER_TIMEOUT_S,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    json: Json = False,
) -> None:
    """Print the messages of a queue and leave them there."""
    with errors_told():
        from broker.cli.client import browse as browse_all

        messages = browse_all(
            url,
            address,
            capability=capability.value if capability else None,
            count=count,
            timeout_s=timeout,
            tls=chosen_tls(url, ca=ca, cert=cert, key=key),
        )
        _print_all(messages, as_json=json, expected=count)


def _given(texts: list[str], files: list[Path], count: int) -> Iterator[str | bytes]:
    for _ in range(count):
        for text in texts:
            yield _checked(text, f"the text {text!r}")
        for file in files:
            yield _text_if_possible(file.read_bytes())


def _lines() -> Iterator[str]:
    """Yield a body for each line of standard input. ValueError at one that is not UTF-8."""
    if isinstance(sys.stdin, TextIOWrapper):
        # decoding would fail for all that Python has read ahead, and not tell the line
        sys.stdin.reconfigure(errors="surrogateescape")
    for number, line in enumerate(sys.stdin, 1):
        yield _checked(line.rstrip("\r\n"), f"line {number} of standard input")


def _checked(text: str, place: str) -> str:
    """Return `text`; ValueError if it has bytes that Python could not decode."""
    if not text.isascii() and any("\udc80" <= each <= "\udcff" for each in text):
        raise ValueError(f"{place}{NOT_UTF_8}")
    return text


def _text_if_possible(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _print_all(messages: Iterable[Message], *, as_json: bool, expected: int | None) -> int:
    """Print each message before it is accepted, so that none is lost; return their number."""
    from broker.cli import message_text

    printed = 0
    on_terminal = sys.stdout.isatty()
    body_of = message_text.body_on_terminal if on_terminal else message_text.body_as_text
    # A bar among the messages would spoil both, so show it only if stdout is no terminal.
    with _progress("received", expected, wanted=not on_terminal) as progress:
        for message in messages:
            line = message_text.as_json(message).encode() if as_json else body_of(message)
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
            printed += 1
            progress.one()
    return printed


class _Bar:
    """A progress bar; it shows nothing if standard error is no terminal."""

    def __init__(self, progress: Progress | None, total: int | None, text: str) -> None:
        self._progress: Final = progress
        self._task: Final = progress.add_task(text, total=total) if progress is not None else None

    def one(self) -> None:
        """Count one message more."""
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task)


@contextmanager
def _progress(text: str, total: int | None, *, wanted: bool = True) -> Iterator[_Bar]:
    if not (wanted and sys.stderr.isatty()):
        yield _Bar(None, total, text)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
    ) as progress:
        yield _Bar(progress, total, text)
