"""The matrix of rights: user, right and path, by two sets of rules, also after a reload.

`access_matrix.py` has the tables, `access_paths.py` what clients do. All paths of a right must come
to the same decision, and it must be one of the rules.
"""

from __future__ import annotations

from typing import Final, cast, final

import pytest

from broker.management.management import SELF, VIEWING
from broker.management.request import FORBIDDEN, GONE
from broker.management.response import OK
from broker.security.access import AccessRules
from broker.security.conditions import NO_ENTRANCE
from broker.security.decision import COVER, Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity
from broker.security.resources import MANAGEMENT, VERBS, Resource, names_with
from broker.security.rules import DENY
from storage.memory import MemoryStore
from tests.scenario.access_matrix import (
    DAY,
    EDITS,
    HTTP,
    ROWS,
    TYPES,
    USERS,
    WEBSOCKET,
    Cell,
    Row,
    cells,
    rules_of,
)
from tests.scenario.access_paths import run, target, whole_management, world
from tests.support.access import RecordedRules, recorded
from tests.support.broker import Broker
from tests.support.http import ask, basic, served
from tests.support.management import Manager


def is_as_expected(cell: Cell, told: str | None, *, allowed: bool) -> bool:
    """Return whether a cell was allowed, or refused for the right of the cell."""
    if told is None:
        return allowed
    return not allowed and told.startswith(f"not allowed to {cell.told} (")


PLACES: Final = [(row, path) for row in ROWS for path in row.paths if path != HTTP]
BY_PLACE: Final = pytest.mark.parametrize(
    ("row", "path"), [pytest.param(*each, id=f"{each[0].right}: {each[1]}") for each in PLACES]
)


@BY_PLACE
def test_every_cell_is_decided_by_the_rules(row: Row, path: str) -> None:
    for cell, allowed in cells(row, path):
        rules, access = recorded(rules_of(row, cell.rules))
        told = run(cell, access)
        assert is_as_expected(cell, told, allowed=allowed), (cell, told)
        decisions = rules.taken(cell.login)
        about = [each for each in decisions if each[0] == row.right]
        assert about, f"{cell} was decided elsewhere"
        assert all(decision is allowed for _, decision in about), cell
        if cell.told == row.right:
            assert not allowed or all(decision for _, decision in decisions), cell


def test_the_table_has_cells_of_both_kinds_for_every_path() -> None:
    """A path that is always allowed, or always refused, would prove nothing."""
    found: dict[str, set[bool]] = {}
    for row in ROWS:
        for path in row.paths:
            found.setdefault(path, set()).update(allowed for _, allowed in cells(row, path))
    assert {path for path, kinds in found.items() if kinds != {True, False}} == set()
    assert len({row.right for row in ROWS}) == len(ROWS)
    assert len(PLACES) * len(USERS) * 4 > 3500, len(PLACES)


# -- completeness


UNASKED: Final = {
    "edit queue": "the settings of an address are changed in the settings file alone",
    "edit topic": "the settings of an address are changed in the settings file alone",
    "edit management:events": "the event log has no operation that changes it",
    "edit management:acl": "rules are changed in the rules file alone",
    "edit management:metrics": "no operation of this part changes something",
    "edit management:audit": "no operation of this part changes something",
}
"""Rights that nothing in the broker asks for, with the reason."""


def test_every_right_that_a_rule_can_give_has_a_cell() -> None:
    known = {
        f"{verb} {kind}"
        for kind, verbs in VERBS.items()
        for verb in verbs
        if kind not in (MANAGEMENT, "temporary")
    }
    for kind in (MANAGEMENT, "temporary"):
        known |= {
            f"{verb} {kind}:{name}" for verb in VERBS[kind] for name in names_with(kind, verb)
        }
    tested = {
        row.right if row.kind in (MANAGEMENT, "temporary") else f"{row.verb} {row.kind}"
        for row in ROWS
    }
    assert known - tested == set(UNASKED)
    assert tested <= known


def test_every_right_that_can_be_used_over_websocket_has_such_a_cell() -> None:
    """Only `connect` names the listener: it has a row for each."""
    without = [row.right for row in ROWS if not any(each.endswith(WEBSOCKET) for each in row.paths)]
    assert without == ["connect connection:amqp"]


def test_every_type_of_management_is_of_a_part_that_has_cells() -> None:
    broker = Broker()
    broker.container.service = whole_management(broker)
    manager = Manager(broker)
    types = manager.ask("GET-OPERATIONS", SELF).map
    assert set(types) == {each for types in TYPES.values() for each in types}
    edited = set()
    for part, names in TYPES.items():
        for name in names:
            operations = types[name]
            assert isinstance(operations, dict)
            if set(operations) - VIEWING:
                edited.add(part)
    assert edited == set(EDITS)


# -- controls: the matrix finds rules that decide wrongly, and paths that do not ask


@final
class BrokenRules(RecordedRules):
    """Rules that give the right of one cell the same `answer` whatever they say."""

    def __init__(self, rules: AccessRules, cell: Cell, *, answer: bool) -> None:
        super().__init__(rules)
        self._user = cell.login
        self._rights = (cell.right, cell.told)
        self._answer = answer

    def decide(
        self,
        identity: Identity,
        verb: str,
        resource: Resource,
        *,
        entrance: Entrance = NO_ENTRANCE,
        client_id: str = "",
    ) -> Decision:
        if identity.user == self._user and f"{verb} {resource.text()}" in self._rights:
            return Decision(allowed=self._answer, rule="broken", because=COVER)
        return super().decide(identity, verb, resource, entrance=entrance, client_id=client_id)


@BY_PLACE
def test_a_wrong_decision_reaches_the_client_by_every_path(row: Row, path: str) -> None:
    """Check that nothing else decides: no second check, and no check that is left out."""
    by_day = [each for each in cells(row, path) if each[0].rules == DAY]
    for wanted in (True, False):
        # before and after a reload
        for cell in [each for each, allowed in by_day if allowed is wanted][:2]:
            broken = BrokenRules(rules_of(row, DAY), cell, answer=not wanted)
            told = run(cell, cast(AccessRules, broken))
            assert not is_as_expected(cell, told, allowed=wanted), cell


def test_the_matrix_finds_deny_rules_that_are_ignored() -> None:
    found: set[str] = set()
    for row, path in PLACES:
        for cell, allowed in cells(row, path):
            is_denied = not row.is_single or (cell.user, cell.rules) == ("eve", DAY)
            if allowed or cell.before or cell.is_web or not is_denied:
                continue
            told = run(cell, rules_of(row, cell.rules, without=DENY))
            if not is_as_expected(cell, told, allowed=allowed):
                found.add(f"{row.right}: {path}")
    places = {f"{row.right}: {path}": row for row, path in PLACES if WEBSOCKET not in path}
    assert found == {
        place
        for place, row in places.items()
        if row.is_single or "orders.secret" in row.right or row.right == "subscribe topic:orders.#"
    }


# -- HTTP


ON_HTTP = [pytest.param(row, id=row.right) for row in ROWS if HTTP in row.paths]


@pytest.mark.parametrize("row", ON_HTTP)
async def test_every_cell_of_http_is_decided_by_the_rules(row: Row) -> None:
    broker = world(Cell(row, HTTP, "root", DAY), rules_of(row, DAY))
    async with served(MemoryStore(), broker=broker) as url:
        for cell, allowed in cells(row, HTTP):
            if cell.before:
                broker.container.adopt_access(rules_of(row, cell.before))
            rules, access = recorded(rules_of(row, cell.rules))
            broker.container.adopt_access(access)
            headers = basic(cell.login, "sesame") if cell.login else {}
            answer = await ask(f"{url}{target(cell)}", headers)
            # there is a lease only for rights on queues and subscriptions
            done = GONE if row.right == "view management:leases" else OK
            assert answer.status == (done if allowed else FORBIDDEN), cell
            told = None if allowed else answer.error()
            assert is_as_expected(cell, told, allowed=allowed), (cell, told)
            about = [each for each in rules.taken(cell.login) if each[0] == row.right]
            assert about, f"{cell} was decided elsewhere"
            assert all(decision is allowed for _, decision in about), cell
