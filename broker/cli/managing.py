"""What all commands that manage a broker take, and how they begin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.ending import errors_told
from broker.cli.messages import ANSWER_TIMEOUT_S, LOCAL, Url

if TYPE_CHECKING:
    from broker.cli.requests import Requests

__all__ = ["ANSWER_TIMEOUT_S", "LOCAL", "Json", "NodeKind", "Password", "Timeout", "Url", "User"]

User = Annotated[
    str | None,
    typer.Option(help="An administrator of the broker.", show_default=False),
]
Password = Annotated[
    str | None,
    typer.Option(
        help="The password; asked for where --user is given and this is not.", show_default=False
    ),
]
Timeout = Annotated[
    float, typer.Option(min=0.001, help="Give up when the broker is silent for so many seconds.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, an object a line.")]
Pattern = Annotated[
    str,
    typer.Argument(help="Only names that match: * is any text, ? one character, [ab] either."),
]
Count = Annotated[int | None, typer.Option(min=1, help="Stop after so many.", show_default=False)]


class NodeKind(Enum):
    """What a node may be."""

    QUEUE = "queue"
    TOPIC = "topic"


@contextmanager
def broker_at(
    url: str, user: str | None, password: str | None, *, timeout: float
) -> Iterator[Requests]:
    """The broker's `$management`. Whatever goes wrong within ends the command."""
    with errors_told():
        from broker.cli.requests import managed, with_user

        if user is not None and password is None:
            password = typer.prompt("Password", hide_input=True, err=True)
        with managed(with_user(url, user, password), timeout) as requests:
            yield requests
