"""`jms-broker reload`: have a running broker read its settings again, or say what that would do."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.managing import BrokerAt, Json, at_broker
from broker.cli.printing import print_records

COLUMNS: Final = ("setting", "effect")
UNCHANGED: Final = "unchanged"


@at_broker
def reload(
    at: BrokerAt,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Apply nothing: print what a reload would do.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Also print settings that are unchanged.")
    ] = False,
    json: Json = False,
) -> None:
    """Read the settings again, and print the effect on each changed one: applied, or needs restart.

    Of each listener with TLS it prints the certificate, and whether that is new or unchanged.
    If one of them is wrong, none is applied. SIGHUP does the same.
    """
    with at.opened() as requests:
        told = requests.ask("RELOAD", "settings", "broker", dry_run=dry_run)
    effects = told["settings"]
    assert isinstance(effects, dict)
    rows = [
        {"setting": name, "effect": effect}
        for name, effect in sorted(effects.items())
        if every or effect != UNCHANGED
    ]
    certificates = told["certificates"]
    assert isinstance(certificates, dict)
    rows += [
        {"setting": f"certificate of {name}", "effect": effect}
        for name, effect in sorted(certificates.items())
    ]
    if rows or json:
        print_records(rows, COLUMNS, as_json=json)
    else:
        typer.echo("no setting has changed")
