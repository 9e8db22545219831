"""Definitions of a broker: nodes, durable subscriptions, users and rules, without messages.

A client exports them page by page, and imports them part by part into another broker. Each entity
is one kind of definitions. Besides the right on definitions, a client needs the right on the part
of management that the kind belongs to: users, for instance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.log_events import IMPORTED, SECRETS_EXPORTED, Notice
from broker.management.definition import (
    RESULTS,
    DefinitionKind,
    ImportTerms,
    definitions_in,
)
from broker.management.entity import (
    EDIT,
    VIEW,
    Caller,
    Entity,
    EntityRecord,
    Operation,
    attributes_of,
)
from broker.management.later import Later
from broker.management.page import OFFSET_MAX, read_page
from broker.management.request import BAD_REQUEST, NOT_FOUND, Refused, Request
from broker.management.response import Response
from broker.management.stretches import one_by_one
from broker.security.resources import MANAGEMENT, Resource

DEFINITIONS: Final = "definitions"

VERSION: Final = 1
"""Version of the form of definitions. An import of any other is refused."""

EXPORTED_MAX: Final = 500
"""Maximum entries that one request exports: other requests wait meanwhile."""

IMPORTED_MAX: Final = 1000
"""Maximum definitions that one request imports; the size of its body limits them, too."""


@dataclass(frozen=True, kw_only=True)
class DefinitionsRecord(EntityRecord):
    """One kind of definitions, such as `queues`. `entries` counts also those without definitions,
    such as temporary queues.
    """

    version: int
    entries: int


class Definitions(Entity):
    """The kinds of definitions that this broker has."""

    type = DEFINITIONS
    part = "definitions"
    attributes = attributes_of(DefinitionsRecord)
    routine = ("EXPORT",)

    def __init__(self, kinds: Sequence[DefinitionKind], notices: list[Notice]) -> None:
        """`notices` gets a line for the log about each import, and each export of secrets."""
        self._kinds: Final = {each.name: each for each in kinds}
        self._notices: Final = notices

    def operations(self) -> Mapping[str, Operation]:
        return {
            "EXPORT": self._export,
            "EXPORT-SECRETS": self._export_secrets,
            "IMPORT": self._import,
        }

    def query(self, request: Request) -> Response:
        page = read_page(request, self.attributes)
        return page.response(self._record(each).as_map() for each in page.choose(self._kinds))

    def _record(self, name: str) -> DefinitionsRecord:
        _, entries = self._kinds[name].page(0, 0, secrets=False)
        return DefinitionsRecord(
            name=name, identity=name, type=DEFINITIONS, version=VERSION, entries=entries
        )

    def _kind(self, request: Request, caller: Caller, verb: str) -> DefinitionKind:
        """Return the kind that a request names, for which the caller must have the right."""
        kind = self._kinds.get(request.subject())
        if kind is None:
            known = ", ".join(self._kinds)
            raise Refused(NOT_FOUND, f"no definitions {request.subject():.50}; there are {known}")
        caller.demand(verb, Resource(MANAGEMENT, kind.part))
        return kind

    def _export(self, request: Request, caller: Caller) -> Later:
        """Return a page of definitions without secrets.

        The response has `version`, `definitions`, and `next`: the `offset` of the next page, null
        at the end. Definitions that are made or deleted meanwhile may be missing.
        """
        return self._page(request, self._kind(request, caller, VIEW), secrets=False)

    def _export_secrets(self, request: Request, caller: Caller) -> Later:
        """Return a page like EXPORT with the verifiers of passwords; needs the right to edit."""
        kind = self._kind(request, caller, EDIT)
        page = self._page(request, kind, secrets=True)
        if kind.has_secrets:
            text = f"{_named(caller)} exported {kind.name} with the verifiers of passwords"
            self._notices.append(SECRETS_EXPORTED.notice(text))
        return page

    def _page(self, request: Request, kind: DefinitionKind, *, secrets: bool) -> Later:
        request.only("offset", "count")
        offset = request.number("offset", 0, high=OFFSET_MAX)
        count = request.number("count", EXPORTED_MAX, low=1, high=EXPORTED_MAX)
        found, entries = kind.page(offset, count, secrets=secrets)
        after = offset + count

        async def answer() -> Response:
            return Response(
                body={
                    "version": VERSION,
                    "definitions": [each async for each in one_by_one(found)],
                    "next": after if after < entries else None,
                }
            )

        return Later(answer)

    def _import(self, request: Request, caller: Caller) -> Later:
        """Add definitions, and change those that differ; none is removed. Idempotent.

        `dry_run` changes nothing. Without `secrets`, verifiers of passwords are left out. The
        response has `outcomes` in the order of the definitions, and the number of each result.
        """
        request.only("version", "definitions", "dry_run", "secrets")
        if request.number("version", 0, high=2**31) != VERSION:
            raise Refused(BAD_REQUEST, f"this broker imports version {VERSION} of definitions")
        kind = self._kind(request, caller, EDIT)
        definitions = definitions_in(request.arguments.get("definitions"), IMPORTED_MAX)
        terms = ImportTerms(
            caller=caller, dry_run=request.flag("dry_run"), secrets=request.flag("secrets")
        )

        async def answer() -> Response:
            outcomes = await kind.take(definitions, terms)
            found = Counter(each.result for each in outcomes)
            counts: dict[str, object] = {result: found[result] for result in RESULTS}
            if not terms.dry_run:
                told = ", ".join(f"{result} {count}" for result, count in counts.items())
                self._notices.append(
                    IMPORTED.notice(f"{_named(caller)} imported {kind.name}: {told}")
                )
            return Response(body={**counts, "outcomes": [each.as_map() for each in outcomes]})

        return Later(answer)


def _named(caller: Caller) -> str:
    """Return the client of a request, as the log names it."""
    return f"{caller.identity.name()} at {caller.address}"
