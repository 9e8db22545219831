"""Roles by management: those that rules name, those of the rules file, and the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.links.container import Container
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import NOT_FOUND, Refused, Request
from broker.management.response import Response
from broker.security.built_in import BUILT_IN_ROLES
from broker.security.rules import OF_ROLE

ROLE: Final = "role"


@dataclass(frozen=True, kw_only=True)
class RoleRecord(EntityRecord):
    """A role. `users` are those that the rules file gives it; accounts and tokens have more.

    `rules` are the ids of the rules and limits about it.
    """

    users: Sequence[str]
    rules: Sequence[str]
    built_in: bool


class RoleEntity(Entity):
    """The roles of the rules in force."""

    type = ROLE
    part = "acl"
    attributes = attributes_of(RoleRecord)

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read}

    def query(self, request: Request) -> Response:
        """Return a page of the roles, sorted by name."""
        page = read_page(request, self.attributes)
        records = self._records()
        return page.response(records[name].as_map() for name in page.choose(records))

    def listed(self, request: Request) -> Later:
        listing = Listing(
            items=list(self._records().values()),
            names_of=lambda record: (record.name, record.identity),
            record_of=lambda record: record,
            filters={"built_in": "built_in"},
        )
        return list_of(request, self.attributes, listing)

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        found = self._records().get(request.subject())
        if found is None:
            raise Refused(NOT_FOUND, f"no role {request.subject():.64}")
        return Response(body=found.as_map())

    def _records(self) -> dict[str, RoleRecord]:
        access = self._container.access
        rules: dict[str, list[str]] = {role: [] for role in (*BUILT_IN_ROLES, *access.roles)}
        about = [(rule.id, rule.who) for rule in access.rules]
        about += [(limit.name(), limit.who) for limit in access.limits]
        for id_, who in about:
            for each in who:
                if each.startswith(OF_ROLE):
                    rules.setdefault(each.removeprefix(OF_ROLE), []).append(id_)
        return {
            role: RoleRecord(
                name=role,
                identity=role,
                type=ROLE,
                users=sorted(access.roles.get(role, ())),
                rules=named,
                built_in=role in BUILT_IN_ROLES,
            )
            for role, named in rules.items()
        }
