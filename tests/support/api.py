"""A broker with the API on a real socket, and a client of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from broker.audit.record import Actor
from broker.http.server import HttpServer
from broker.http_settings import HttpSettings
from broker.management.configuration import ConfigurationSource, ReloadEffects, WrongSettings
from broker.management.management import Management
from broker.management.users import LoginRules
from broker.security.identity import ADMIN
from broker.security.throttle import LoginThrottle
from broker.security.users import Users
from broker.stored_tokens import StoredTokens
from storage.api import Store
from tests.support.access import ADA, OWNER, RuledUsers, access_of
from tests.support.audit import RecordingAudit
from tests.support.broker import Broker
from tests.support.http import Answer, ask, basic
from tests.support.stores import GatedStore

PASSWORD = "sesame"

LOG_LEVELS = ("debug", "info", "warning", "error")

JSON = {"content-type": "application/json"}


class FixedSettings(ConfigurationSource):
    """Settings of which a reload applies one."""

    def __init__(self) -> None:
        self.level = "info"

    def values(self) -> Mapping[str, Mapping[str, object]]:
        log = {"value": {"format": "json", "level": self.level}, "origin": "default"}
        return {
            "credit": {"value": 7, "origin": "default", "reload": True},
            "log": {**log, "reload": True},
        }

    def set_log_level(self, level: str) -> None:
        if level not in LOG_LEVELS:
            raise WrongSettings(f"no level {level}")
        self.level = level

    def reload(self, *, dry_run: bool, actor: Actor, request_id: str | None) -> ReloadEffects:  # noqa: ARG002
        effects = {"credit": "unchanged" if dry_run else "applied"}
        return ReloadEffects(effects, {"secure": "unchanged: server.pem"})


class RecordsInFolder(RecordingAudit):
    """A recording audit that also names a folder of records, which is empty."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def folder(self) -> Path | None:
        return self._folder


class ApiClient:
    """A client of the API, as one user: the owner, who has every right, or ada."""

    def __init__(
        self, url: str, broker: Broker, audit: RecordingAudit, throttle: LoginThrottle
    ) -> None:
        self.url = url
        self.broker = broker
        self.audit = audit
        self.throttle = throttle

    @property
    def users(self) -> RuledUsers:
        """Return the users of a broker that `api_of` has made."""
        users = self.broker.container.authenticator
        assert isinstance(users, RuledUsers)
        return users

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        user: str = OWNER,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Return the answer to a request below the root; `body` is bytes, or becomes JSON."""
        given = {**basic(user, PASSWORD), **(JSON if body is not None else {}), **(headers or {})}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        return await ask(f"{self.url}/api/v1{path}", given, method, body=data)

    async def get(self, path: str) -> dict[str, object]:
        """Return the body of a response, which must be 200."""
        answer = await self.ask("GET", path)
        assert answer.status == 200, answer.body
        found = json.loads(answer.body)
        assert isinstance(found, dict)
        return found

    async def items(self, path: str) -> list[dict[str, Any]]:
        """Return all items of a page."""
        items = (await self.get(path))["items"]
        assert isinstance(items, list)
        return items

    async def names(self, path: str, attribute: str = "name") -> list[object]:
        """Return an attribute of all items of a page."""
        return [item[attribute] for item in await self.items(path)]

    async def job(self, body: object) -> dict[str, object]:
        """Return the job of an action once it has ended."""
        begun = await self.ask("POST", "/message-actions", body)
        assert begun.status == 202, begun.body
        return await self.ended(begun)

    async def ended(self, begun: Answer) -> dict[str, object]:
        """Return the job that an answer has begun, once it has ended."""
        while True:
            job = await self.get(begun.headers["location"].removeprefix("/api/v1"))
            if job["state"] != "running":
                return job


def problem(answer: Answer) -> dict[str, object]:
    """Return the problem in an answer, whose headers and status must be those of one."""
    assert answer.headers["content-type"] == "application/problem+json", answer
    found = json.loads(answer.body)
    assert isinstance(found, dict)
    assert found["status"] == answer.status
    assert found["instance"] == f"urn:jms-broker:request:{answer.headers['x-request-id']}"
    return found


@asynccontextmanager
async def api_of(
    folder: Path, *rights: str, broker: Broker | None = None, store: Store | None = None
) -> AsyncIterator[ApiClient]:
    """Run the API of a broker in which `ada` has these rights; yield a client of it.

    `store` is what the API shows in place of the broker's own store.
    """
    users = RuledUsers({"": {ADMIN}})
    users.passwords = {ADA: PASSWORD, OWNER: PASSWORD}
    if broker is None:
        broker = Broker(authenticator=users, access=access_of(*rights))
    container = broker.container
    container.audit = audit = RecordsInFolder(folder)
    broker.router.changes.are_recorded = True
    if store is None:
        store = broker.store
    tasks: set[asyncio.Task[None]] = set()
    known = Users(folder / "users.toml")
    throttle = LoginThrottle()
    fixed = FixedSettings()
    management = Management(
        container,
        store,
        lambda work: tasks.add(asyncio.ensure_future(work)),
        accounts=lambda: LoginRules(known, anonymous=False, throttle=throttle),
        api_tokens=StoredTokens(GatedStore(), broker.journal),
        settings=lambda: fixed,
        listeners=lambda: ["amqp"],
    )
    container.service = management
    server = HttpServer(HttpSettings(port=0), container, store, management=management)
    await server.start()
    try:
        yield ApiClient(server.url(), broker, audit, throttle)
    finally:
        await server.stop()
        await asyncio.gather(*tasks)
