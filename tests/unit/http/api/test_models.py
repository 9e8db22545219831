"""Bodies: which fields go together."""

import pytest
from pydantic import ValidationError

from broker.http.api.models import MessageActionBody, UserBody

pytestmark = pytest.mark.requirement("OPS-01")

Q = {"queue": "q"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param({"action": "delete", "from": Q}, "set one of ids", id="none chosen"),
        pytest.param(
            {"action": "delete", "from": Q, "all": True, "ids": ["1"]}, "set one of", id="two"
        ),
        pytest.param({"action": "move", "from": Q, "all": True}, "has `to` if", id="move nowhere"),
        pytest.param(
            {"action": "delete", "from": Q, "all": True, "to": "x"}, "has `to`", id="delete to"
        ),
        pytest.param({"action": "deliver", "from": Q, "all": True}, "takes ids", id="deliver all"),
        pytest.param(
            {"action": "retry", "from": Q, "ids": ["1"], "dry_run": True}, "dry_run", id="dry ids"
        ),
        pytest.param(
            {"action": "retry", "from": {**Q, "subscription": "s"}, "all": True},
            "either",
            id="both",
        ),
        pytest.param(
            {"action": "retry", "from": Q, "ids": ["1"] * 10_001}, "at most 10000", id="many ids"
        ),
        pytest.param({"action": "retry", "from": Q, "all": True, "limit": 0}, "limit", id="limit"),
    ],
)
def test_actions_that_make_no_sense(body: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        MessageActionBody.model_validate(body)


@pytest.mark.parametrize(
    ("body", "passes"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({"enabled": False}, True, id="enabled alone"),
        pytest.param({"roles": ["x"]}, True, id="roles alone"),
        pytest.param({"certificates": ["x"]}, False, id="certificates without a password"),
        pytest.param({"password": "p", "roles": ["x"], "enabled": True}, True, id="all of it"),
        pytest.param({"password": "p", "keep_old_s": 5}, True, id="an old password"),
        pytest.param({"password": "p", "roles": [], "keep_old_s": 5}, False, id="and roles"),
        pytest.param({"enabled": "yes"}, False, id="a text for a boolean"),
    ],
)
def test_users(body: dict[str, object], passes: bool) -> None:
    try:
        UserBody.model_validate(body)
    except ValidationError:
        assert not passes
    else:
        assert passes
