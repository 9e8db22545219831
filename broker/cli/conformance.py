"""Options of `jms-broker conformance`. The harness itself is tests/conformance."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer


def conformance(
    url: Annotated[str, typer.Argument(help="The broker, amqp://USER:PASSWORD@HOST:PORT.")],
    user: Annotated[str | None, typer.Option(help="Who logs in; nobody by default.")] = None,
    password: Annotated[
        str | None, typer.Option(envvar="JMS_BROKER_CONFORMANCE_PASSWORD", help="With what.")
    ] = None,
    clause: Annotated[
        str | None,
        typer.Option(help="Only a clause and those below it: 2.6 of core, jms:13, anonterm:, …."),
    ] = None,
    case: Annotated[
        str | None, typer.Option(help="Only the case of that name, with its frames.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write a report for build servers.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report for people.")] = None,
    address: Annotated[
        str | None,
        typer.Option(help="A queue that exists, to be emptied; by default new ones are used."),
    ] = None,
    missing_address: Annotated[
        str | None, typer.Option(help="An address that does not exist and will not be made.")
    ] = None,
    blocking_address: Annotated[
        str | None, typer.Option(help="A small queue that gives no credit when it is full.")
    ] = None,
    rejecting_address: Annotated[
        str | None, typer.Option(help="A small queue that rejects when it is full.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Wait so many seconds for each answer.")
    ] = 5.0,
) -> None:
    """Test a broker, this one or another, against the rules of AMQP 1.0."""
    # in a wheel, the harness is in the package; in a checkout, among the other tests
    package = "broker" if find_spec("broker.conformance") is not None else "tests"
    status: int = import_module(f"{package}.conformance.command").run(
        url=url,
        user=user,
        password=password,
        clause=clause,
        case=case,
        junit=junit,
        html=html,
        address=address,
        missing_address=missing_address,
        blocking_address=blocking_address,
        rejecting_address=rejecting_address,
        timeout_s=timeout,
    )
    raise typer.Exit(status)
