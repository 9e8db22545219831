"""Policies of addresses, made from the settings."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from broker.address_settings import NAMES, AddressSettings, NodeSettings
from broker.routing.addresses.address import check_new
from broker.routing.addresses.policy import AddressPolicy, Policies
from broker.routing.addresses.prefixes import Prefixes
from broker.routing.errors import RoutingError
from broker.routing.queues.node import QUEUE, TOPIC
from broker.settings import Settings, SettingsError


def policies_of(settings: Settings) -> Policies:
    """Return the policies of all addresses. Raise SettingsError for a name that cannot be."""
    prefixes = Prefixes(tuple(settings.address_prefixes))
    general = settings.model_dump(include=set(NAMES))
    kinds = ((QUEUE, settings.queue), (TOPIC, settings.topic))
    return Policies(
        [(address.pattern, _policy(general, address, prefixes)) for address in settings.address],
        _policy(general, AddressSettings(pattern="*"), prefixes),
        settings.default_kind,
        declared={
            (kind, _canonical(node.name, kind, prefixes)): _policy(
                general, _with_its_pattern(settings, node), prefixes
            )
            for kind, nodes in kinds
            for node in nodes
        },
        prefixes=prefixes,
        auto_create_max=settings.auto_create_max,
    )


def _canonical(name: str, kind: str, prefixes: Prefixes) -> str:
    """Return the canonical address of a node that the settings name (DST-10).

    Raise SettingsError if a node cannot have that name.
    """
    try:
        return prefixes.parse(name, kind).text
    except RoutingError as refusal:
        raise SettingsError(f"a queue or topic of the settings: {refusal}") from None


def _with_its_pattern(settings: Settings, node: NodeSettings) -> AddressSettings:
    """Return the settings of a declared node: its own, else those of the pattern of its name."""
    chosen: dict[str, object] = {"pattern": "*"}
    for address in settings.address:
        if fnmatchcase(node.name, address.pattern):
            chosen = address.model_dump(exclude_none=True)
            break
    chosen.update(node.model_dump(exclude_none=True, exclude={"name"}))
    return AddressSettings.model_validate(chosen)


def _policy(general: dict[str, Any], address: AddressSettings, prefixes: Prefixes) -> AddressPolicy:
    """Return the policy of `address`: its settings, else the `general` ones for all addresses."""
    chosen = general | address.model_dump(exclude_none=True, exclude={"pattern"})
    for name in ("dead_letter", "expiry"):
        chosen[name] = _canonical(chosen[name], QUEUE, prefixes)
        try:
            if chosen[name]:
                check_new(chosen[name])
        except RoutingError as refusal:
            raise SettingsError(f"{name} of {address.pattern}: {refusal}") from None
    return AddressPolicy(**chosen)
