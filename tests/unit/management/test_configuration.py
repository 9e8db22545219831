"""The type `settings` of management: a reload, and what it would do."""

from collections.abc import Mapping

import pytest

from broker.audit.record import Actor
from broker.management.configuration import (
    Configuration,
    ConfigurationSource,
    ReloadEffects,
    WrongSettings,
)
from broker.management.entity import Caller
from broker.management.later import Later
from broker.management.request import CONFLICT, Refused, Request
from broker.management.response import Response
from broker.security.access import AccessRules
from broker.security.identity import ADMIN, Identity
from tests.support.broker import entrance

pytestmark = pytest.mark.requirement("SEC-12")

IDENTITY = Identity("ada", roles=frozenset({ADMIN}))


class Settings(ConfigurationSource):
    """Settings of which one has changed; `problem` is what is wrong with them."""

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        self.level = ""
        self.asked: list[tuple[bool, str, str | None]] = []

    def values(self) -> Mapping[str, Mapping[str, object]]:
        return {"credit": {"value": 7, "origin": "default", "reload": True}}

    def set_log_level(self, level: str) -> None:
        if self.problem:
            raise WrongSettings(self.problem)
        self.level = level

    def reload(self, *, dry_run: bool, actor: Actor, request_id: str | None) -> ReloadEffects:
        if self.problem:
            raise WrongSettings(self.problem)
        self.asked.append((dry_run, actor.user, request_id))
        return ReloadEffects({"credit": "applied"}, {"secure": "new certificate: server.pem"})


def caller() -> Caller:
    rules = AccessRules()
    return Caller(
        identity=IDENTITY,
        address="127.0.0.1:1",
        may=lambda verb, resource: rules.decide(IDENTITY, verb, resource, entrance=entrance()),
        tell=lambda _: None,
        request_id="3-1",
    )


async def answered(source: ConfigurationSource | None, **arguments: object) -> Response:
    request = Request(operation="RELOAD", type="settings", arguments=arguments)
    found = Configuration(lambda: source).operations()["RELOAD"](request, caller())
    assert isinstance(found, Later)
    return await found.answer()


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_reload_says_what_it_has_done(dry_run: bool) -> None:
    source = Settings()
    response = await answered(source, dry_run=dry_run)
    assert response.body == {
        "dry_run": dry_run,
        "settings": {"credit": "applied"},
        "certificates": {"secure": "new certificate: server.pem"},
    }
    assert source.asked == [(dry_run, "ada", "3-1")]


async def test_wrong_settings_are_refused_with_what_is_wrong() -> None:
    response = await answered(Settings("port = 70000: too large"))
    assert (response.status, response.description) == (CONFLICT, "port = 70000: too large")


async def test_an_embedded_broker_reads_no_settings() -> None:
    with pytest.raises(Refused, match="no settings that could be read again"):
        await answered(None)


async def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(Refused, match="knows no argument now"):
        await answered(Settings(), now=True)


def test_the_settings_are_told() -> None:
    request = Request(operation="READ", type="settings")
    response = Configuration(Settings).operations()["READ"](request, caller())
    assert isinstance(response, Response)
    assert response.body == {
        "settings": {"credit": {"value": 7, "origin": "default", "reload": True}}
    }


def set_level(source: ConfigurationSource | None) -> Response:
    request = Request(operation="SET-LOG-LEVEL", type="settings", arguments={"level": "debug"})
    found = Configuration(lambda: source).operations()["SET-LOG-LEVEL"](request, caller())
    assert isinstance(found, Response)
    return found


@pytest.mark.requirement("OPS-01")
def test_the_level_of_the_log_is_set() -> None:
    source = Settings()
    assert set_level(source).body == {"level": "debug"}
    assert source.level == "debug"
    with pytest.raises(Refused, match="no such level"):
        set_level(Settings("no such level"))
    with pytest.raises(Refused, match="no settings that could be read again"):
        set_level(None)
