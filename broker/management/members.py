"""The members of the broker's group: list them, let another one lead, forget one that is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from broker.links.broker_group import BrokerGroup
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import ACCEPTED, NO_CONTENT, Response
from storage.api import Store
from storage.members import StoredMember

MEMBER: Final = "member"


@dataclass(frozen=True, kw_only=True)
class MemberRecord(EntityRecord):
    """A member. `leads` is true of one of them, `up` of those that run now.

    `urls` are where clients reach it.
    """

    leads: bool
    up: bool
    urls: list[str]


class Members(Entity):
    """The members of the group, as of a second ago; none without a group.

    The leader alone answers such requests.
    """

    type = MEMBER
    part = "config"
    attributes = attributes_of(MemberRecord)

    def __init__(self, group: BrokerGroup | None, store: Store) -> None:
        self._group: Final = group
        self._store: Final = store

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read, "SWITCH": self._switch, "DELETE": self._delete}

    def query(self, request: Request) -> Response:
        page = read_page(request, self.attributes)
        found = self._records()
        return page.response(found[name].as_map() for name in page.choose(found))

    def listed(self, request: Request) -> Later:
        found = self._records()
        listing = Listing(
            items=list(found), names_of=lambda name: (name, name), record_of=found.get
        )
        return list_of(request, self.attributes, listing)

    def _records(self) -> dict[str, MemberRecord]:
        group = self._group
        if group is None:
            return {}
        return {member.name: _record(member, group.name) for member in group.members}

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        found = self._records().get(request.subject())
        if found is None:
            raise _unknown(request.subject())
        return Response(body=found.as_map())

    def _delete(self, request: Request, caller: Caller) -> Later:  # noqa: ARG002
        """Forget a member that is not up: clients are no longer told its addresses."""
        request.only()
        name = request.subject()
        found = self._records().get(name)
        if found is None:
            raise _unknown(name)
        if found.up:
            raise Refused(CONFLICT, f"{name} is up: stop it first")
        return Later(partial(self._forget, name))

    async def _forget(self, name: str) -> Response:
        await self._store.forget_member(name)
        return Response(status=NO_CONTENT, description="No Content")

    def _switch(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Hand over to a member, or to the first other one if `name` is empty, and stand by."""
        request.only()
        group = self._group
        if group is None:
            raise Refused(CONFLICT, "this broker is no member of a group (set ha.enabled)")
        if group.hand_over is None:
            raise Refused(CONFLICT, "this broker is starting or draining: it hands over to none")
        others = [
            member.name for member in group.members if member.is_up and member.name != group.name
        ]
        wanted = request.name or ""
        if wanted == group.name:
            raise Refused(CONFLICT, f"{wanted} leads already")
        if wanted and wanted not in others:
            raise Refused(NOT_FOUND, f"no member {wanted:.50} of the group is up")
        if not others:
            raise Refused(CONFLICT, "no other member of the group is up")
        group.hand_over_to(wanted or others[0])
        return Response(status=ACCEPTED, description="Accepted", body={"heir": group.heir})


def _record(member: StoredMember, leader: str) -> MemberRecord:
    urls = [f"{kind}://{_authority(*at)}" for kind, at in sorted(member.addresses.items())]
    return MemberRecord(
        name=member.name,
        identity=member.name,
        type=MEMBER,
        leads=member.name == leader,
        up=member.is_up,
        urls=urls,
    )


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _unknown(name: str) -> Refused:
    return Refused(NOT_FOUND, f"no member {name:.50} of the group is known")
