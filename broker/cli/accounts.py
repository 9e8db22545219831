"""User stores of `jms-broker user`: the users file on this machine, or a running broker's users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from broker.cli.broker_url import without_password
from broker.cli.ending import EXIT_NOT_FOUND, fail
from broker.cli.healthcheck import offers_anonymous, urls_of_settings
from broker.cli.wire import Unhealthy
from broker.security.account import user_attributes, utc_text
from broker.security.user_sources import IN_FILE, IN_STORE
from broker.security.users import Users

if TYPE_CHECKING:
    from pathlib import Path

    from broker.cli.requests import Record, Requests
    from broker.settings import Settings

PROBE_TIMEOUT_S: Final = 1.0
"""Seconds to wait until the settings' broker shows if it lets clients in without a password."""

UNTIL: Final = "until it is restarted, or reloads (SIGHUP)"
"""Part of a warning: until when a broker that had no users lets clients in without a password."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The options of `user add`. None leaves what an existing user has."""

    administrator: bool | None = None
    roles: Sequence[str] | None = None
    certificates: Sequence[str] | None = None
    scram: bool = True

    @property
    def are_about_roles(self) -> bool:
        """Whether the operator has said which roles the user gets."""
        return self.administrator is not None or self.roles is not None


class UserStore(ABC):
    """The users of a broker, and whether clients get in without a password."""

    @abstractmethod
    def add(self, name: str, password: str, wishes: Wishes) -> bool:
        """Add a user, or give an existing one a new password; return True if the user is new."""

    @abstractmethod
    def passwd(self, name: str, password: str, *, keep_old_s: int, scram: bool) -> str | None:
        """Change a password; return until when the old one enters, too, as text, or None."""

    @abstractmethod
    def set_enabled(self, name: str, *, enabled: bool) -> bool:
        """Enable or disable a user; return False if it was so before."""

    @abstractmethod
    def set_roles(self, name: str, roles: Sequence[str]) -> bool:
        """Give a user other roles; return False if it had them before."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a user."""

    @abstractmethod
    def records(self) -> Iterator[Record]:
        """Yield the attributes of each user, as `user_attributes` names them."""

    @abstractmethod
    def record(self, name: str) -> Record:
        """Return the attributes of a user."""

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

    def add(self, name: str, password: str, wishes: Wishes) -> bool:
        return self._users.add(
            name,
            password,
            administrator=wishes.administrator,
            roles=wishes.roles,
            certificates=wishes.certificates,
            scram=wishes.scram,
        )

    def passwd(self, name: str, password: str, *, keep_old_s: int, scram: bool) -> str | None:
        self._require(name)
        until = self._users.passwd(name, password, keep_old_s=keep_old_s, scram=scram)
        return None if until is None else utc_text(until)

    def set_enabled(self, name: str, *, enabled: bool) -> bool:
        self._require(name)
        return self._users.set_enabled(name, enabled=enabled)

    def set_roles(self, name: str, roles: Sequence[str]) -> bool:
        self._require(name)
        return self._users.set_roles(name, roles)

    def remove(self, name: str) -> None:
        self._require(name)
        self._users.remove(name)

    def records(self) -> Iterator[Record]:
        return (self.record(name) for name in self._users.names())

    def record(self, name: str) -> Record:
        account = self._users.account(name)
        if account is None:
            self._fail_without(name)
        return {"name": name, **user_attributes(account), "source": IN_FILE}

    def _require(self, name: str) -> None:
        if name != self._users.first and self._users.account(name) is None:
            self._fail_without(name)

    def _fail_without(self, name: str) -> NoReturn:
        fail(f"no user {name!r} in {self._users.file}", EXIT_NOT_FOUND)

    def place(self) -> str:
        return str(self._users.file)

    def still_open(self) -> str | None:
        try:
            urls = urls_of_settings(self._config)
        except Unhealthy:
            return None  # port 0: the port that such a broker listens on is unknown here
        url = next((each for each in urls if offers_anonymous(each, PROBE_TIMEOUT_S)), None)
        if url is None:
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

    def add(self, name: str, password: str, wishes: Wishes) -> bool:
        given = {
            "administrator": wishes.administrator,
            "roles": None if wishes.roles is None else list(wishes.roles),
            "certificates": None if wishes.certificates is None else list(wishes.certificates),
            "scram": None if wishes.scram else False,
        }
        exact = {key: value for key, value in given.items() if value is not None}
        self._told = self._requests.ask("CREATE", "user", name, password=password, exact=exact)
        return bool(self._told["created"])

    def passwd(self, name: str, password: str, *, keep_old_s: int, scram: bool) -> str | None:
        exact: dict[str, object] = {} if scram else {"scram": False}
        if keep_old_s > 0:
            exact["keep_old_s"] = keep_old_s
        self._told = self._requests.ask("UPDATE", "user", name, password=password, exact=exact)
        until = self._told["old_password_until"]
        return None if until is None else str(until)

    def set_enabled(self, name: str, *, enabled: bool) -> bool:
        self._told = self._requests.ask("UPDATE", "user", name, exact={"enabled": enabled})
        return bool(self._told["changed"])

    def set_roles(self, name: str, roles: Sequence[str]) -> bool:
        self._told = self._requests.ask("UPDATE", "user", name, exact={"roles": list(roles)})
        return bool(self._told["changed"])

    def remove(self, name: str) -> None:
        self._told = self._requests.ask("DELETE", "user", name)

    def records(self) -> Iterator[Record]:
        return self._requests.records("user")

    def record(self, name: str) -> Record:
        return self._requests.ask("READ", "user", name)

    def place(self) -> str:
        place = "the store" if self._told.get("source") == IN_STORE else self._told.get("file")
        return f"{place} of the broker at {self._url}"

    def still_open(self) -> str | None:
        if not self._told.get("anonymous"):
            return None
        return (
            f"the broker at {self._url} lets clients in without a password {UNTIL},"
            " and then too if allow_anonymous = true"
        )
