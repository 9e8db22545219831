"""A question of an operator: may a user do something with a resource?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.security.entrance import AMQP, Entrance
from broker.security.identity import Identity

if TYPE_CHECKING:
    from broker.security.access import AccessRules
    from broker.security.decision import Decision
    from broker.security.explanation import Explanation
    from broker.security.resources import Resource


@dataclass(frozen=True, kw_only=True)
class AccessQuestion:
    """A client that asks for a `verb`, and its connection. No `user` means no login.

    `roles` are those that the user has beside those of the rules file. `host` is the address of the
    client.
    """

    verb: str
    user: str = ""
    roles: tuple[str, ...] = ()
    mechanism: str = ""
    client_id: str = ""
    listener: str = ""
    host: str = ""
    is_tls: bool = False

    def identity(self) -> Identity:
        """Return the user, with the roles that are not in the rules file."""
        return Identity(self.user, roles=frozenset(self.roles), mechanism=self.mechanism)

    def entrance(self) -> Entrance:
        """Return how the client is connected."""
        return Entrance(listener=self.listener, kind=AMQP, host=self.host, is_tls=self.is_tls)

    def decided_by(self, rules: AccessRules, resource: Resource) -> Decision:
        """Return the decision of `rules` about `resource`, which must be canonical."""
        return rules.decide(
            self.identity(),
            self.verb,
            resource,
            entrance=self.entrance(),
            client_id=self.client_id,
        )

    def explained_by(self, rules: AccessRules, resource: Resource) -> Explanation:
        """Return the decision of `rules` with its reasons."""
        return rules.explain(
            self.identity(),
            self.verb,
            resource,
            entrance=self.entrance(),
            client_id=self.client_id,
        )
