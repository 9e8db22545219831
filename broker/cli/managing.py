"""What all commands that manage a broker take, and how they begin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from broker.cli.ending import errors_told
from broker.cli.messages import ANSWER_TIMEOUT_S, LOCAL, Url

if TYPE_CHECKING:
    from broker.cli.requests import Requests

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
    typer.Argument(help="Only names that match: * is any text, ? one character, \\[ab] either."),
]
Count = Annotated[int | None, typer.Option(min=1, help="Stop after so many.", show_default=False)]


class NodeKind(Enum):
    """What a node may be."""

    QUEUE = "queue"
    TOPIC = "topic"


@dataclass(frozen=True)
class BrokerAt:
    """The options that say which broker is meant, and who asks."""

    url: Url = LOCAL
    user: User = None
    password: Password = None
    timeout: Timeout = ANSWER_TIMEOUT_S

    @contextmanager
    def opened(self) -> Iterator[Requests]:
        """The broker's `$management`. Whatever goes wrong within ends the command."""
        with errors_told():
            from broker.cli.requests import managed, with_user

            password = self.password
            if self.user is not None and password is None:
                password = typer.prompt("Password", hide_input=True, err=True)
            with managed(with_user(self.url, self.user, password), self.timeout) as requests:
                yield requests


def taking(options: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the fields of the dataclass `options` as options.

    They come behind the command's own, in place of its first parameter, which is an `options`.
    """
    fields: Final = signature(options, eval_str=True).parameters

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def told(**given: Any) -> None:
            chosen = options(**{name: given.pop(name) for name in fields})
            command(chosen, **given)

        own = signature(command, eval_str=True)
        parameters = [*list(own.parameters.values())[1:], *fields.values()]
        parameters.sort(key=lambda each: each.default is not Parameter.empty)
        told.__annotations__ = {each.name: each.annotation for each in parameters}
        vars(told)["__signature__"] = own.replace(parameters=parameters)
        return told

    return with_options


at_broker: Final = taking(BrokerAt)
"""Gives a command the options that say which broker is meant."""
