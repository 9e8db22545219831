"""Commands `jms-broker subscription` and `jms-broker explain`, on subscriptions of topics."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from broker.cli.commands import Commands
from broker.cli.ending import EXIT_STATUSES
from broker.cli.entities import EntityTable, add_list, add_show
from broker.cli.managing import BrokerAt, Json, NodeKind, at_broker
from broker.cli.printing import json_of, print_record

subscriptions = Commands(
    help="List, show and delete named subscriptions.", epilog=EXIT_STATUSES, no_args_is_help=True
)

SUBSCRIPTIONS: Final = EntityTable(
    types=("subscription",),
    columns=("identity", "address", "shared", "messages", "acquired", "consumers", "selector"),
    list_help="Print the named subscriptions whose name matches PATTERN, sorted by name.",
    argument="identity",
    argument_help="The subscription, as in the list: durable/CLIENT/NAME. NAME is enough if no"
    " other subscription has it.",
    show_help="Print everything about one subscription.",
)

Identity = Annotated[str, typer.Argument(help=SUBSCRIPTIONS.argument_help, show_default=False)]

add_list(subscriptions, SUBSCRIPTIONS)
add_show(subscriptions, SUBSCRIPTIONS)


@subscriptions.command()
@at_broker
def delete(
    at: BrokerAt,
    identity: Identity,
    force: Annotated[
        bool, typer.Option("--force", help="Even if it has consumers: their links are detached.")
    ] = False,
    json: Json = False,
) -> None:
    """Delete a subscription, as its client's unsubscribe would; its messages are lost."""
    with at.opened() as broker:
        broker.ask("DELETE", "subscription", identity, force=force)
    typer.echo(json_of({"deleted": identity}) if json else f"deleted {identity}")


@at_broker
def explain(
    at: BrokerAt,
    address: Annotated[
        str | None,
        typer.Argument(
            help="What would be received from; left out, a durable subscription is looked up, as"
            " by unsubscribe.",
            show_default=False,
        ),
    ] = None,
    client_id: Annotated[str, typer.Option(help="The client's id.")] = "",
    name: Annotated[str, typer.Option(help="The link's name: the subscription's, if any.")] = "",
    kind: Annotated[
        NodeKind | None, typer.Option(help="What ADDRESS is said to be.", show_default=False)
    ] = None,
    durable: Annotated[bool, typer.Option("--durable", help="A durable subscription.")] = False,
    shared: Annotated[bool, typer.Option("--shared", help="A shared subscription.")] = False,
    in_global: Annotated[
        bool, typer.Option("--global", help="In the name space of all clients.")
    ] = False,
    selector: Annotated[
        str | None, typer.Option(help="The consumer's selector.", show_default=False)
    ] = None,
    no_local: Annotated[
        bool, typer.Option("--no-local", help="Without what the client itself publishes.")
    ] = False,
    json: Json = False,
) -> None:
    """Print what a consumer would meet, without making one: the rule, the conflict, the refusal."""
    facts = {
        "address": address,
        "lookup": address is None,
        "container_id": client_id,
        "link_name": name,
        "kind": kind.value if kind is not None else None,
        "durable": durable,
        "shared": shared,
        "global": in_global,
        "selector": selector,
        "no_local": no_local,
    }
    with at.opened() as broker:
        print_record(broker.ask("EXPLAIN", "attach", more=facts), as_json=json)
