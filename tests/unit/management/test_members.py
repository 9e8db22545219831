"""The type `member` of management: the brokers of a group, and another one that is to lead."""

from __future__ import annotations

from typing import Final

import pytest

from broker.links.broker_group import BrokerGroup
from broker.management.entity import Caller
from broker.management.later import Later, Told
from broker.management.members import Members
from broker.management.request import CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import ACCEPTED, NO_CONTENT, Response
from broker.security.access import AccessRules
from broker.security.identity import ADMIN, Identity
from storage.members import StoredMember
from tests.support.broker import Broker, entrance
from tests.support.stores import GatedStore

pytestmark = pytest.mark.requirement("OPS-02")

ONE = StoredMember("one", {"amqps": ("one.example", 5671), "amqp": ("::1", 5672)})
TWO = StoredMember("two", {})
THREE = StoredMember("three", {})
GONE = StoredMember("gone", {}, is_up=False)


class RememberingStore(GatedStore):
    """A store that remembers which members it was to forget."""

    def __init__(self) -> None:
        super().__init__()
        self.forgotten: Final[list[str]] = []

    async def forget_member(self, name: str) -> None:
        self.forgotten.append(name)


class Leader:
    """A broker named `one`, which leads; `handed_over` counts how often it began to hand over."""

    def __init__(self, *others: StoredMember) -> None:
        self.group: Final = BrokerGroup("one", Broker().router.timer_queue)
        self.group.lead([ONE, *others])
        self.group.hand_over = self._hand_over
        self.handed_over = 0
        self.store: Final = RememberingStore()

    def _hand_over(self) -> None:
        self.handed_over += 1

    def asked(self, operation: str, name: str) -> Response:
        return asked(Members(self.group, self.store), operation, name)

    async def forgotten(self, name: str) -> Response:
        found = self.performed("DELETE", name)
        assert isinstance(found, Later)
        return await found.answer()

    def performed(self, operation: str, name: str) -> Response | Later | Told:
        return performed(Members(self.group, self.store), operation, name)


def asked(members: Members, operation: str, name: str) -> Response:
    found = performed(members, operation, name)
    assert isinstance(found, Response)
    return found


def performed(members: Members, operation: str, name: str) -> Response | Later | Told:
    identity = Identity("ada", roles=frozenset({ADMIN}))
    rules = AccessRules()
    caller = Caller(
        identity=identity,
        address="",
        may=lambda verb, resource: rules.decide(identity, verb, resource, entrance=entrance()),
    )
    request = Request(operation=operation, type="member", name=name)
    return members.operations()[operation](request, caller)


def test_members_have_their_urls_and_one_of_them_leads() -> None:
    leader = Leader(TWO, GONE)
    rows = Members(leader.group, leader.store).query(Request(operation="QUERY", type="member")).body
    assert isinstance(rows, dict)
    assert rows["results"] == [
        ["gone", "gone", "member", False, False, []],
        ["one", "one", "member", True, True, ["amqp://[::1]:5672", "amqps://one.example:5671"]],
        ["two", "two", "member", False, True, []],
    ]
    assert leader.asked("READ", "two").body == {
        "name": "two",
        "identity": "two",
        "type": "member",
        "leads": False,
        "up": True,
        "urls": [],
    }


HEIRS = [
    # the name that is asked for, the member that takes over
    pytest.param("three", "three", id="a certain member"),
    pytest.param("", "two", id="any other member"),
]


@pytest.mark.parametrize(("name", "heir"), HEIRS)
def test_a_switch_hands_over_to_another_member(name: str, heir: str) -> None:
    leader = Leader(GONE, TWO, THREE)
    answer = leader.asked("SWITCH", name)
    assert (answer.status, answer.body) == (ACCEPTED, {"heir": heir})
    assert (leader.group.heir, leader.handed_over) == (heir, 1)


REFUSED = [
    # the other members, the name that is asked for, the status, what the error says
    pytest.param([TWO], "one", CONFLICT, "one leads already", id="the leader itself"),
    pytest.param([TWO], "three", NOT_FOUND, "no member three of the group is up", id="not up"),
    pytest.param([], "", CONFLICT, "no other member of the group is up", id="alone"),
    pytest.param([GONE], "gone", NOT_FOUND, "no member gone of the group is up", id="gone"),
    pytest.param([GONE], "", CONFLICT, "no other member of the group is up", id="all gone"),
]


@pytest.mark.parametrize(("others", "name", "status", "said"), REFUSED)
def test_what_cannot_lead_is_refused(
    others: list[StoredMember], name: str, status: int, said: str
) -> None:
    leader = Leader(*others)
    with pytest.raises(Refused, match=said) as refused:
        leader.asked("SWITCH", name)
    assert (refused.value.status, leader.group.heir, leader.handed_over) == (status, "", 0)


def test_a_leader_that_drains_refuses_a_switch() -> None:
    leader = Leader(TWO)
    leader.group.hand_over = None
    with pytest.raises(Refused, match="starting or draining"):
        leader.asked("SWITCH", "two")


def test_an_unknown_member_has_no_record() -> None:
    with pytest.raises(Refused, match="no member two of the group is known"):
        Leader().asked("READ", "two")


async def test_a_member_that_is_gone_is_forgotten() -> None:
    leader = Leader(TWO, GONE)
    assert (await leader.forgotten("gone")).status == NO_CONTENT
    assert leader.store.forgotten == ["gone"]
    for name, said in (("two", "two is up"), ("three", "no member three of the group is known")):
        with pytest.raises(Refused, match=said):
            leader.performed("DELETE", name)
    assert leader.store.forgotten == ["gone"]


def test_a_broker_without_a_group_has_no_members() -> None:
    members = Members(None, RememberingStore())
    body = members.query(Request(operation="QUERY", type="member")).body
    assert isinstance(body, dict)
    assert body["results"] == []
    with pytest.raises(Refused, match="no member of a group"):
        asked(members, "SWITCH", "two")
