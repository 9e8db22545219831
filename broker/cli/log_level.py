"""`jms-broker log-level`: read or change the level of a running broker's log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import json_of

if TYPE_CHECKING:
    from broker.cli.requests import Requests


@at_broker
def log_level(
    at: BrokerAt,
    level: Annotated[
        str | None,
        typer.Argument(
            help="debug, info, warning or error. [default: only print the level]",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print the level of the log, or change it until the settings are read again.

    The log gets lines of that level and above. A restart and `jms-broker reload` bring back the
    level of the settings, `log.level`.
    """
    with at.opened() as broker:
        now = _level_of(broker) if level is None else _set(broker, level)
    typer.echo(json_of({"level": now}) if json else now)


def _level_of(broker: Requests) -> object:
    settings = broker.ask("READ", "settings", "broker")["settings"]
    assert isinstance(settings, dict)
    return settings["log"]["value"]["level"]


def _set(broker: Requests, level: str) -> object:
    return broker.ask("SET-LOG-LEVEL", "settings", "broker", level=level)["level"]
