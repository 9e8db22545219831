"""The interface of logins: how a connection learns who its client is."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from broker.security.entrance import Entrance
from broker.security.identity import Identity

if TYPE_CHECKING:
    from broker.links.peer import Peer


class LoginRefused(Exception):  # noqa: N818 - as refusals are named in this project
    """Credentials are wrong. The message says why, to the operator."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Exchange:
    """The login of one connection (core 5.3.2).

    It answers the client by one call, now or later, of the peer's `challenged`, `authenticated`,
    `rejected` or `undecided`.
    """

    @abstractmethod
    def mechanisms(self) -> list[str]:
        """Return the SASL mechanisms that are offered to the client."""

    @abstractmethod
    def anonymous(self) -> Identity | None:
        """Return the identity of a client that omits the SASL layer; None if it must not."""

    @abstractmethod
    def start(self, peer: Peer, mechanism: str, response: bytes | None) -> None:
        """Answer the client's choice; `response` is None if it sent no initial response."""

    def answer(self, peer: Peer, response: bytes) -> None:  # noqa: ARG002
        """Answer the client's response to the last challenge."""
        raise AssertionError("no challenge was sent")


@mypyc_attr(allow_interpreted_subclasses=True)
class Authenticator:
    """Decides which clients may connect, and who they are."""

    @abstractmethod
    def begin(self, entrance: Entrance) -> Exchange:
        """Return the login of a new connection."""

    def is_disabled(self, user: str) -> bool:  # noqa: ARG002 - unless it can disable users
        """Return whether an operator has disabled `user`. For the log and the audit alone."""
        return False

    @abstractmethod
    async def identify(self, user: str, password: str, entrance: Entrance) -> Identity | None:
        """Return the identity of `user`, None if the password is wrong or the user unknown.

        For clients that log in without SASL. May take a while; raises TooManyLogins if too many
        logins wait.
        """

    def takes_passwords(self, entrance: Entrance) -> bool:  # noqa: ARG002
        """Return whether the client may send its password itself: others could read it."""
        return True

    def identify_by_certificate(self, entrance: Entrance) -> Identity | None:  # noqa: ARG002
        """Return the identity of the user for whom the client's certificate stands, if for one."""
        return None

    async def identify_by_token(self, token: str, entrance: Entrance) -> Identity | None:  # noqa: ARG002
        """Return the identity of the user that `token` names, None if tokens are not taken.

        For clients that log in without SASL; None, too, if the token is wrong. Raise TooManyLogins
        as `identify` does.
        """
        return None

    async def renew(self, identity: Identity, token: str) -> Identity:  # noqa: ARG002
        """Return `identity` with the roles and the end of `token`, which has the same subject.

        Raise LoginRefused if the token does not renew that login; TooManyLogins if it cannot be
        judged now.
        """
        raise LoginRefused("the login cannot be renewed: the broker takes no tokens")

    @abstractmethod
    def current(self, identity: Identity) -> Identity | None:
        """Return who a client that has logged in is by now; None if its login is no longer valid.

        Its user may have other roles, or none, or may not exist any more.
        """
