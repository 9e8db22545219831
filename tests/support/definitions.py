"""A broker with all kinds of definitions, asked by management."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Final

from broker.audit.record import BROKER, Actor
from broker.management.management import Management
from broker.management.user_changes import UserChanges
from broker.management.users import LoginRules
from broker.routing.addresses.policy import AddressPolicy
from broker.security.rules_file import read_rules
from broker.security.throttle import LoginThrottle
from broker.security.users import Users
from tests.support.audit import RecordingAudit
from tests.support.broker import Broker, Doorman
from tests.support.frames import Transfer
from tests.support.management import Manager, Reply, read_reply, request

RULES: Final = """\
# the rules of the shop
[roles]
ordering = ["svc"]
helping = ["viewer"]

# who sends orders
[[rule]]
id = "orders"
who = ["role:ordering"]
can = ["produce"]
on = ["queue:orders.#"]
when = {listener = ["out"], from = ["10.0.0.0/8"], tls = true}

[[rule]]
id = "viewing"
who = ["role:helping"]
can = ["view", "edit"]
on = ["management:definitions", "management:queues"]

[[limit]]
who = ["role:ordering"]
connections = 5
"""


class DefinitionSite:
    """A broker without sockets, with a users file and a rules file in `folder`.

    `first`, an administrator, is the user of the requests unless another one is given.
    """

    def __init__(
        self, folder: Path, *, rules: str = RULES, user: str = "first", limited: bool = False
    ) -> None:
        self.rules_file: Final = folder / "acl.toml"
        self.rules_file.write_text(rules)
        self.users: Final = Users(folder / "users", first=("first", "one"))
        small = AddressPolicy(max_messages=3, full="reject", redelivery_backoff=2.0)
        self.broker: Final = Broker(
            authenticator=Doorman(administrators=("", "first")),
            access=read_rules(self.rules_file),
            patterns=[("small.*", small)] if limited else (),
        )
        self.audit: Final = RecordingAudit()
        container = self.broker.container
        container.audit = self.audit
        container.router.changes.are_recorded = True
        self._beside: Final[list[Coroutine[None, None, None]]] = []
        self._changes: Final = UserChanges(lambda: self.users, self.audit)
        container.service = Management(
            container,
            None,
            self._beside.append,
            accounts=lambda: LoginRules(self.users, anonymous=False, throttle=LoginThrottle()),
            users_changed=self._users_changed,
            acl_file=lambda: self.rules_file,
        )
        self.manager: Final = Manager(self.broker, user=user)

    def _users_changed(self, actor: Actor = BROKER, request_id: str | None = None) -> None:
        self._changes.record(actor, request_id)

    async def ask(self, operation: str, name: str, /, **arguments: object) -> Reply:
        """Return the response to a request about definitions."""
        self.manager.send(request(operation, "definitions", name, body=arguments))
        while self._beside:
            await self._beside.pop(0)
        bodies = self.manager.client.bodies()
        (found,) = [body for body in bodies if isinstance(body, Transfer)]
        return read_reply(found.payload)

    async def export(self, kind: str, *, secrets: bool = False) -> list[dict[str, object]]:
        """Return all definitions of a kind."""
        told = await self.ask("EXPORT-SECRETS" if secrets else "EXPORT", kind)
        assert told.status == 200, told.description
        assert told.map["next"] is None
        listed = told.map["definitions"]
        assert isinstance(listed, list)
        return listed

    async def bring(
        self,
        kind: str,
        definitions: Sequence[Mapping[str, object]],
        *,
        dry_run: bool = False,
        secrets: bool = False,
    ) -> list[tuple[str, str]]:
        """Import definitions; return name and result of each, with a note behind the result."""
        told = await self.ask(
            "IMPORT",
            kind,
            version=1,
            definitions=[dict(each) for each in definitions],
            dry_run=dry_run,
            secrets=secrets,
        )
        assert told.status == 200, told.description
        outcomes = told.map["outcomes"]
        assert isinstance(outcomes, list)
        return [
            (each["name"], f"{each['result']}: {each['note']}" if each["note"] else each["result"])
            for each in outcomes
        ]
