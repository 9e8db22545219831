"""Definitions of queues and topics.

The settings of a node are those that the broker's settings file has for its address. An import
cannot change that file, so it only notes which settings of a definition differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from broker.address_settings import NAMES
from broker.journal import Journal
from broker.management.definition import (
    ADDED,
    REFUSED,
    UNCHANGED,
    Definition,
    DefinitionError,
    DefinitionKind,
    DefinitionReader,
    ImportOutcome,
    ImportTerms,
    name_in,
    paged,
)
from broker.routing.addresses.address import check_new
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.errors import RoutingError
from broker.routing.queues.node import QUEUE, Node
from broker.routing.router import Router


class NodeDefinitions(DefinitionKind):
    """The nodes of one kind that outlast connections."""

    def __init__(self, kind: str, router: Router, journal: Journal) -> None:
        self.name = self.part = "queues" if kind == QUEUE else "topics"
        self._kind: Final = kind
        self._router: Final = router
        self._journal: Final = journal

    def page(self, offset: int, count: int, *, secrets: bool) -> tuple[Iterable[Definition], int]:  # noqa: ARG002
        router = self._router
        # of one type for mypy: a dict of queues is none of nodes
        nodes = cast("Mapping[str, Node]", router.queues if self._kind == QUEUE else router.topics)
        chosen = [each for each in paged(nodes.values(), offset, count) if each.owner < 0]
        return (self._definition(each) for each in chosen), len(nodes)

    def _definition(self, node: Node) -> Definition:
        return {
            "name": node.address,
            "auto_created": node in self._router.population.auto_created,
            "creator": node.creator,
            "settings": settings_of(node.policy),
        }

    async def take(
        self, definitions: Sequence[Definition], terms: ImportTerms
    ) -> list[ImportOutcome]:
        return [self._take(each, terms) for each in definitions]

    def _take(self, definition: Definition, terms: ImportTerms) -> ImportOutcome:
        name = name_in(definition)
        try:
            reader = DefinitionReader(definition, "name", "auto_created", "creator", "settings")
            address = self._router.parse(reader.required("name", str), self._kind)
            address = address.of_kind(self._kind)
            wanted = reader.optional("settings", dict)
            made = reader.optional("auto_created", bool) is True
            creator = reader.optional("creator", str)
            there = self._router.find(address)
            policy = self._router.policy_of(address.text, self._kind)
            note = _difference(policy if there is None else there.policy, wanted)
            if there is not None:
                return ImportOutcome(name=name, result=UNCHANGED, note=note)
            check_new(address.text)
            if not terms.dry_run:
                batch = self._journal.batch
                self._router.create(address, batch, by_client=made, creator=creator)
            return ImportOutcome(name=name, result=ADDED, note=note)
        except (RoutingError, DefinitionError) as error:
            return ImportOutcome(name=name, result=REFUSED, note=str(error))


def settings_of(policy: AddressPolicy) -> dict[str, object]:
    """Return the settings of a node by the names that the settings file has for them."""
    return {name: getattr(policy, name) for name in sorted(NAMES)}


def _difference(policy: AddressPolicy, wanted: Mapping[str, object] | None) -> str:
    """Return which of the wanted settings the node does not have, in words; empty for none."""
    here = settings_of(policy)
    differ = [
        f"{name} = {value!r} (here {here[name]!r})"
        for name, value in sorted((wanted or {}).items())
        if name in here and here[name] != value
    ]
    return f"set in the broker's settings file: {', '.join(differ)}" if differ else ""
