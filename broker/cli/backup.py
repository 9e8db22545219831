"""`jms-broker backup`: let a running broker copy its store while it continues to serve."""

from __future__ import annotations

import time
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final

import typer

from broker.cli.ending import fail
from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.nodes import number_in
from broker.cli.printing import json_of, progress

if TYPE_CHECKING:
    from broker.cli.requests import Record, Requests

LOOK_EVERY_S: Final = 0.1


@at_broker
def backup(
    at: BrokerAt,
    file: Annotated[
        str,
        typer.Argument(
            metavar="TO",
            help="A new file on the broker's machine, from the root (/…).",
            show_default=False,
        ),
    ],
    json: Json = False,
) -> None:
    """Let a running broker copy its store to a new file. A broker can start on the copy as it is.

    The copy contains everything that was acknowledged before the backup.
    """
    if not PurePosixPath(file).is_absolute():
        fail(f"{file} is no path from the root: it is the broker that writes", 2)
    with at.opened() as broker:
        broker.ask("CREATE", "backup", file)
        record = _ended(broker, file)
    if record["state"] != "done":
        fail(str(record["problem"]))
    told = {"file": file, "bytes": record["total_bytes"]}
    typer.echo(json_of(told) if json else f"copied {told['bytes']} bytes to {file}")


def _ended(broker: Requests, file: str) -> Record:
    """Wait until the broker's backup to `file` has ended; return its record."""
    seen = 0
    record = broker.ask("READ", "backup", file)
    with progress("bytes", None) as bar:
        while record["state"] == "running":
            time.sleep(LOOK_EVERY_S)
            record = broker.ask("READ", "backup", file)
            bar.advance(number_in(record, "bytes") - seen)
            seen = number_in(record, "bytes")
    return record
