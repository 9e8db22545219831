"""Options and the connection of all commands that manage a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from broker.cli.client_tls import Ca, Cert, Key, chosen_tls
from broker.cli.ending import errors_told
from broker.cli.messages import ANSWER_TIMEOUT_S, LOCAL
from broker.cli.shard_option import ShardAsUrl

if TYPE_CHECKING:
    from broker.cli.requests import Requests

Url = Annotated[
    str,
    typer.Option(
        envvar="JMS_BROKER_URL",
        help="The broker, amqp://USER:PASSWORD@HOST:PORT or amqps://…; or https://… of its HTTP"
        " API, which needs no client library.",
    ),
]
User = Annotated[
    str | None,
    typer.Option(help="A user of the broker with the rights for it.", show_default=False),
]
Password = Annotated[
    str | None,
    typer.Option(help="The password; asked for if only --user is given.", show_default=False),
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="JMS_BROKER_TOKEN",
        help="With https://: a token in place of a user and a password.",
        show_default=False,
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
    """The kind of a node."""

    QUEUE = "queue"
    TOPIC = "topic"


@dataclass(frozen=True)
class BrokerAt:
    """The options for the broker, the user, the wait for answers in seconds, and TLS.

    `shard` has become the `url` by now.
    """

    url: Url = LOCAL
    user: User = None
    password: Password = None
    token: Token = None
    timeout: Timeout = ANSWER_TIMEOUT_S
    ca: Ca = None
    cert: Cert = None
    key: Key = None
    shard: ShardAsUrl = None

    @contextmanager
    def opened(self) -> Iterator[Requests]:
        """Connect to the broker's management for the block; an error in it ends the command.

        Ask for the password if there is a user without one.
        """
        with errors_told():
            from broker.cli.requests import managed, with_user

            tls = chosen_tls(self.url, ca=self.ca, cert=self.cert, key=self.key)
            password = self.password
            if self.user is not None and password is None:
                password = typer.prompt("Password", hide_input=True, err=True)
            url = with_user(self.url, self.user, password)
            with managed(url, self.timeout, tls=tls, token=self.token) as requests:
                yield requests


def taking(options: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the fields of the dataclass `options` to a command's options.

    They follow the command's own, and replace its first parameter, which is an `options`.
    """
    fields: Final = signature(options, eval_str=True).parameters

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def told(**given: Any) -> None:
            chosen = options(**{name: given.pop(name) for name in fields})
            command(chosen, **given)

        own = signature(command, eval_str=True)
        parameters = [*list(own.parameters.values())[1:], *fields.values()]
        # a signature has parameters without a default first
        parameters.sort(key=lambda each: each.default is not Parameter.empty)
        told.__annotations__ = {each.name: each.annotation for each in parameters}
        vars(told)["__signature__"] = own.replace(parameters=parameters)
        return told

    return with_options


at_broker: Final = taking(BrokerAt)
"""A decorator that gives a command the options of `BrokerAt`."""
