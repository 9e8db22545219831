"""User stores of `jms-broker user`: the users file on this machine, or a running broker's users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from broker.cli.broker_url import without_password
from broker.cli.ending import EXIT_NOT_FOUND, fail
from broker.cli.healthcheck import Unhealthy, offers_anonymous, url_of_settings
from broker.security.authenticate import Users

if TYPE_CHECKING:
    from pathlib import Path

    from broker.cli.requests import Requests
    from broker.settings import Settings

PROBE_TIMEOUT_S: Final = 1.0
"""Seconds to wait until the settings' broker shows if it lets clients in without a password."""

UNTIL: Final = "until it is restarted, or reloads (SIGHUP)"
"""Part of a warning: until when a broker that had no users lets clients in without a password."""


class UserStore(ABC):
    """The users of a broker who log in with a password, and whether clients get in without one."""

    @abstractmethod
    def add(self, name: str, password: str, *, administrator: bool | None) -> bool:
        """Add a user, or give an existing one a new password; return True if the user is new.

        `administrator` says whether the user may manage the broker; None leaves that as it is,
        False for a new user.
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a user."""

    @abstractmethod
    def administrators(self) -> Iterator[tuple[str, bool]]:
        """Yield each user's name, and whether the user may manage the broker."""

    @abstractmethod
    def place(self) -> str:
        """Return where the users are stored, as text for the operator.

        Call it after a change: only the response to a change names a running broker's file.
        """

    @abstractmethod
    def still_open(self) -> str | None:
        """Return why clients get in without a password, None if they do not or if that is unknown.

        Call it after a change, like `place`.
        """


class FileAccounts(UserStore):
    """The users file that the settings name. A running broker notices changes of the file."""

    def __init__(self, settings: Settings, config: Path | None) -> None:
        self._settings: Final = settings
        self._config: Final = config
        first = None if settings.user is None else (settings.user, "")  # only names matter here
        self._users: Final = Users(settings.users_file, first=first)

    def add(self, name: str, password: str, *, administrator: bool | None) -> bool:
        return self._users.add(name, password, administrator=administrator)

    def remove(self, name: str) -> None:
        if name not in self._users.names():
            fail(f"no user {name!r} in {self._users.file}", EXIT_NOT_FOUND)
        self._users.remove(name)

    def administrators(self) -> Iterator[tuple[str, bool]]:
        return ((name, self._users.is_administrator(name)) for name in self._users.names())

    def place(self) -> str:
        return str(self._users.file)

    def still_open(self) -> str | None:
        try:
            url = url_of_settings(self._config)
        except Unhealthy:
            return None  # port 0: the port that such a broker listens on is unknown here
        if not offers_anonymous(url, PROBE_TIMEOUT_S):
            return None
        if self._settings.allow_anonymous:
            return f"the broker at {url} lets clients in without a password: allow_anonymous = true"
        return f"the broker at {url} lets clients in without a password {UNTIL}"


class BrokerAccounts(UserStore):
    """The users of a running broker, changed by requests to its `$management`."""

    def __init__(self, requests: Requests, url: str) -> None:
        self._requests: Final = requests
        self._url: Final = without_password(url)
        self._told: Mapping[str, object] = {}

    def add(self, name: str, password: str, *, administrator: bool | None) -> bool:
        marked = {} if administrator is None else {"administrator": administrator}
        self._told = self._requests.ask("CREATE", "user", name, password=password, exact=marked)
        return bool(self._told["created"])

    def remove(self, name: str) -> None:
        self._told = self._requests.ask("DELETE", "user", name)

    def administrators(self) -> Iterator[tuple[str, bool]]:
        return (
            (str(record["name"]), bool(record["administrator"]))
            for record in self._requests.records("user")
        )

    def place(self) -> str:
        return f"{self._told.get('file')} of the broker at {self._url}"

    def still_open(self) -> str | None:
        if not self._told.get("anonymous"):
            return None
        return (
            f"the broker at {self._url} lets clients in without a password {UNTIL},"
            " and then too if allow_anonymous = true"
        )
