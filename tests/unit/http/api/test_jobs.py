"""Actions on many messages: they come to an end, and tell what they have done."""

import asyncio
from pathlib import Path

import pytest

from broker.http.api import jobs
from broker.security.identity import ADMIN, MONITOR
from tests.support.access import ADA
from tests.support.api import ApiClient, api_of, problem
from tests.support.jms_http import until

pytestmark = pytest.mark.requirement("OPS-01")

Q = {"queue": "q"}


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make portions so small that an action has several."""
    monkeypatch.setattr(jobs, "PORTION", 3)


def waiting(api: ApiClient, name: str = "q") -> int:
    return int(api.broker.queue(name).backlogs.waiting)


IDS = [str(number * 10 + 4) for number in range(10)]


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    ("action", "done", "left", "there"),
    [
        pytest.param({"action": "delete", "all": True}, 10, 0, 0, id="delete all"),
        pytest.param({"action": "delete", "all": True, "limit": 7}, 7, 3, 0, id="delete some"),
        pytest.param({"action": "delete", "ids": IDS[:8]}, 8, 2, 0, id="delete these"),
        pytest.param(
            {"action": "delete", "ids": IDS, "limit": 2}, 2, 8, 0, id="delete two of these"
        ),
        pytest.param({"action": "move", "to": "t", "all": True}, 10, 0, 10, id="move all"),
        pytest.param(
            {"action": "move", "to": "t", "selector": "JMSPriority = 9"}, 0, 10, 0, id="move none"
        ),
        pytest.param({"action": "copy", "to": "t", "all": True}, 10, 10, 10, id="copy all"),
        pytest.param(
            {"action": "delete", "selector": "JMSPriority = 4"}, 10, 0, 0, id="delete by selector"
        ),
        pytest.param(
            {"action": "delete", "all": True, "dry_run": True}, 10, 10, 0, id="only count"
        ),
        pytest.param(
            {"action": "move", "to": "t", "selector": "JMSPriority = 4", "dry_run": True},
            *(10, 10, 0),
            id="only count by selector",
        ),
        pytest.param(
            {"action": "delete", "all": True, "limit": 4, "dry_run": True},
            *(4, 10, 0),
            id="only count up to a limit",
        ),
    ],
)
async def test_actions(
    action: dict[str, object], done: int, left: int, there: int, tmp_path: Path
) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q", 10)
        await api.ask("PUT", "/queues/t")
        job = await api.job({**action, "from": Q})
        assert (job["state"], job["done"], job["reason"]) == ("done", done, None)
        assert (waiting(api), waiting(api, "t")) == (left, there)
        assert (job["user"], job["ended_at"] is None) == ("owner", False)


async def test_what_is_missing_is_named(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q")
        job = await api.job({"action": "delete", "from": Q, "ids": ["4", "14"]})
    assert (job["done"], job["missing"]) == (1, ["14"])


async def test_dead_letters_that_say_no_origin_stay(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q", 2)
        job = await api.job({"action": "retry", "from": Q, "all": True})
        assert waiting(api) == 2
    assert (job["state"], job["done"], job["skipped"]) == ("done", 0, 2)
    assert "does not say where it came from" in str(job["reason"])


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        pytest.param({"action": "move", "to": "nowhere"}, 404, "nowhere", id="no target"),
        pytest.param({"action": "move", "to": "q"}, 400, "is where they are", id="the same"),
        pytest.param(
            {"action": "delete", "from": {"queue": "x"}}, 404, "no queue x", id="no queue"
        ),
    ],
)
async def test_a_wrong_action_fails_at_once(
    body: dict[str, object], status: int, why: str, tmp_path: Path
) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q")
        answer = await api.ask("POST", "/message-actions", {"from": Q, "all": True, **body})
        assert (await api.get("/jobs"))["items"] == []
    assert (answer.status, why in str(problem(answer)["detail"])) == (status, True)


@pytest.mark.usefixtures("_small")
async def test_an_action_ends_if_its_right_does(tmp_path: Path) -> None:
    async with api_of(tmp_path, "view,edit management:messages") as api:
        api.broker.fill("q", 10)
        body = {"action": "move", "to": "t", "from": Q, "all": True}
        answer = await api.ask("POST", "/message-actions", body, user=ADA)
        assert (answer.status, waiting(api)) == (403, 10)


@pytest.mark.attack("Z7")
@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    "asked", [{"all": True}, {"ids": [str(number * 10 + 4) for number in range(30)]}]
)
@pytest.mark.parametrize(
    ("ends", "why"),
    [
        pytest.param(False, "not allowed to edit management:messages", id="a role is taken away"),
        pytest.param(True, "the login is no longer valid", id="the user is removed"),
    ],
)
async def test_an_action_ends_if_its_user_changes(
    ends: bool, why: str, asked: dict[str, object], tmp_path: Path
) -> None:
    async with api_of(tmp_path) as api:
        api.users.roles[ADA] = frozenset({ADMIN})
        api.broker.fill("q", 30)
        body = {"action": "delete", "from": Q, **asked}
        beginning = asyncio.get_running_loop().create_task(
            api.ask("POST", "/message-actions", body, user=ADA)
        )
        await until(lambda: waiting(api) < 30)
        if ends:
            api.users.ended.add(ADA)
        else:
            api.users.roles[ADA] = frozenset({MONITOR})
        begun = await beginning
        assert begun.status == 202, begun.body
        job = await api.ended(begun)
        assert waiting(api) > 0
    assert (job["state"], why in str(job["reason"])) == ("failed", True), job["reason"]


async def test_only_so_many_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "RUNNING_MAX", 0)
    async with api_of(tmp_path) as api:
        answer = await api.ask(
            "POST", "/message-actions", {"action": "delete", "from": Q, "all": True}
        )
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")


async def test_so_many_are_remembered_the_newest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "KEPT_MAX", 2)
    async with api_of(tmp_path) as api:
        api.broker.fill("q", 4)
        for _ in range(3):
            await api.job({"action": "delete", "from": Q, "all": True, "limit": 1})
        found = await api.names("/jobs", "id")
    assert found == ["3", "2"]


@pytest.mark.usefixtures("_small")
async def test_each_portion_is_recorded(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q", 7)
        await api.job({"action": "delete", "from": Q, "all": True})
        told = [each for each in api.audit.told() if each[0] == "message.deleted"]
    assert told == [("message.deleted", "queue:q", "done")] * 3
