"""The roles that rules, limits and the rules file name."""

import pytest

from broker.management.request import Refused, Request
from broker.management.roles import RoleEntity
from broker.security.access import AccessRules
from broker.security.built_in import BUILT_IN_ROLES
from tests.support.access import rule
from tests.support.broker import Broker


def entity() -> RoleEntity:
    rules = [rule("r1", "send queue:a", who="role:clerk"), rule("r2", "send queue:a", who="user:x")]
    return RoleEntity(Broker(access=AccessRules(rules, {"empty": ["ada"]})).container)


def read(name: str) -> object:
    request = Request(operation="READ", type="role", name=name)
    return entity().operations()["READ"](request, None)  # type: ignore[arg-type]


@pytest.mark.requirement("OPS-01")
@pytest.mark.parametrize(
    ("name", "users", "rules", "built_in"),
    [
        pytest.param("clerk", [], ["r1"], False, id="of a rule"),
        pytest.param("empty", ["ada"], [], False, id="of the file alone"),
        pytest.param("admin", [], ["built-in:admin-everything"], True, id="built in"),
    ],
)
def test_a_role(name: str, users: list[str], rules: list[str], built_in: bool) -> None:
    body = read(name).body  # type: ignore[attr-defined]
    assert (body["users"], body["rules"], body["built_in"]) == (users, rules, built_in)


def test_a_role_that_is_not_there() -> None:
    with pytest.raises(Refused, match="no role nobody"):
        read("nobody")


def test_all_roles() -> None:
    response = entity().query(Request(operation="QUERY", type="x"))
    assert isinstance(response.body, dict)
    names = [row[0] for row in response.body["results"]]
    assert names == sorted([*BUILT_IN_ROLES, "clerk", "empty"])
