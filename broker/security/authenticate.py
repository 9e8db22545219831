"""Authenticates users: the users file, its passwords, and whether a client may enter without one.

The file has one user a line, `name:hash` with the hash as argon2 writes it, or
`name:hash:administrator` for a user that may manage the broker; lines that begin with `#` are
kept. It is read again when it has changed, so a user that is added while the broker runs may
enter at once. Every wrong password costs one hash, whether the user exists or not. A right one
costs it once; after that, a keyed digest of it is compared, which is kept in memory as long as
the user's line does not change.
"""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker.settings import Settings, SettingsError

if TYPE_CHECKING:
    from argon2 import PasswordHasher

NAME_BYTES_MAX: Final = 255

# OWASP's minimum for argon2id. RFC 9106 asks for 64 MiB, which each of two logins at a time would
# add to a broker that otherwise runs in 30 MiB.
MEMORY_KIB: Final = 19_456
PASSES: Final = 2
LANES: Final = 1

ADMINISTRATOR: Final = "administrator"
"""The mark behind the hash of a user that may manage the broker."""

NOBODY: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1$"
    "g43qHeIl5uJANlzJXapyIw$SXXeivewY13A+m+qnQosAvXZ9C1aa5lElUEM2wdqUCk"
)
"""The hash that is checked for unknown users, so that they take as long as known ones."""


class UsersError(ValueError):
    """A users file is invalid, or cannot be changed as requested. The text says what to do."""


@dataclass(frozen=True)
class Entry:
    """A line of the users file."""

    hash: str
    administrator: bool


class Users:
    """The users with a password: those of the users file, and the first user of the settings."""

    def __init__(self, file: Path, *, first: tuple[str, str] | None = None) -> None:
        self._file: Final = file
        self._first: Final = first
        self._hashes: dict[str, Entry] = {}
        self._read_at: tuple[int, int] | None = None
        self._secret: Final = secrets.token_bytes(32)
        self._verified: Final[dict[str, tuple[str, bytes]]] = {}

    def recall(self, name: str, password: str) -> bool:
        """Return True if `password` was right in `check` and the user's line has not changed since.

        Takes microseconds. False says nothing about the password.
        """
        verified = self._verified.get(name)
        if verified is None:
            return False
        known, digest = verified
        if known != self._known(name):
            del self._verified[name]
            return False
        return hmac.compare_digest(digest, self._digest(password))

    def _known(self, name: str) -> str:
        """Return the hash that a password of `name` is compared with; empty for the first user."""
        if self._first is not None and self._first[0] == name:
            return ""
        entry = self._entries().get(name)
        return NOBODY if entry is None else entry.hash

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._secret, password.encode(errors="surrogatepass"), "sha256")

    def _entries(self) -> dict[str, Entry]:
        """Return the users of the file; those of its last valid version if it is invalid now."""
        try:
            return self._current()
        except UsersError:
            return self._hashes

    def exist(self) -> bool:
        """Return True if there is a user with a password, or the file cannot be read."""
        try:
            return not self.is_empty()
        except UsersError:
            return True

    def check(self, name: str, password: str) -> bool:
        """Return whether `password` is that of `name`. Takes a core for tens of milliseconds.

        To be called off the event loop, from any thread. The first user of the settings has
        precedence over one of the same name in the file.
        """
        known = self._known(name)
        right = _matches(known or NOBODY, password)
        if self._first is not None and self._first[0] == name:
            right = hmac.compare_digest(self._first[1].encode(), password.encode())
        # A client that has no password sends an empty one (`reliability.md` A5).
        right = right and password != ""
        if right:
            self._verified[name] = (known, self._digest(password))
        return right

    def is_empty(self) -> bool:
        """Return whether there is no user with a password. UsersError if the file is unreadable."""
        return self._first is None and not self._current()

    def is_administrator(self, name: str) -> bool:
        """Return whether the user `name`, who has entered, may manage the broker.

        The first user of the settings may: the operator who sets it owns the broker.
        """
        if self._first is not None and self._first[0] == name:
            return True
        entry = self._entries().get(name)
        return entry is not None and entry.administrator

    @property
    def file(self) -> Path:
        """The absolute path of the users file."""
        return self._file.absolute()

    @property
    def first(self) -> str | None:
        """The name of the first user, which the settings give and not the file; or None."""
        return None if self._first is None else self._first[0]

    def names(self) -> list[str]:
        """Return the names of all users in the file, sorted. UsersError if it is unreadable."""
        return sorted(self._current())

    def add(self, name: str, password: str, *, administrator: bool | None = None) -> bool:
        """Write the user `name` to the file, or change its password. Return whether it is new.

        `administrator` None leaves that as it was; a new user is then no administrator.
        UsersError if the name or password is not allowed, or the file cannot be changed.
        """
        refusal = refusal_of_name(name) or refusal_of_password(password)
        if refusal is not None:
            raise UsersError(refusal)
        if name == self.first:
            raise UsersError(f"user {name!r} is in the broker's settings, which win over the file")
        if administrator is None:
            before = self._current().get(name)
            administrator = before is not None and before.administrator
        line = f"{name}:{_hasher().hash(password)}"
        return not _replace(self._file, name, f"{line}:{ADMINISTRATOR}" if administrator else line)

    def remove(self, name: str) -> None:
        """Remove the user `name` from the file. UsersError if it is not in it."""
        if not _replace(self._file, name, None):
            raise UsersError(f"no user {name!r} in {self._file}")

    def _current(self) -> dict[str, Entry]:
        """Return the users of the file by name, read again if it has changed."""
        try:
            status = self._file.stat()
        except FileNotFoundError:
            self._hashes = {}
            self._read_at = None
            return self._hashes
        except OSError as error:
            raise UsersError(f"{self._file}: {error.strerror}") from None
        changed = (status.st_mtime_ns, status.st_ino)
        if changed != self._read_at:
            self._hashes = _parse(self._file)
            self._read_at = changed
        return self._hashes


def open_users(settings: Settings) -> tuple[Users, bool]:
    """Return the users that `settings` name, and whether clients without a password may enter.

    SettingsError if the broker must not start with these settings.
    """
    users = Users(settings.users_file, first=_first_user(settings))
    try:
        nobody = users.is_empty()
    except UsersError as error:
        raise SettingsError(str(error)) from None
    return users, anonymous_allowed(settings, users_exist=not nobody)


def anonymous_allowed(settings: Settings, *, users_exist: bool) -> bool:
    """Return whether any client that reaches the port may enter.

    The default is yes if only this machine reaches it and there are no users. SettingsError if no
    client at all could enter, or any client by oversight.
    """
    if settings.allow_anonymous is None:
        if users_exist:
            return False
        exposed = _exposed(settings)
        if exposed is None:
            return True
        raise SettingsError(
            f"{exposed} lets other machines in, and there are no users: add one with"
            " `jms-broker user add NAME`, or set JMS_BROKER_USER and JMS_BROKER_PASSWORD, or let"
            " everybody in with JMS_BROKER_ALLOW_ANONYMOUS=true"
        )
    if not settings.allow_anonymous and not users_exist:
        raise SettingsError(
            f"allow_anonymous = false, and there are no users in {settings.users_file}: add one"
            " with `jms-broker user add NAME`"
        )
    return settings.allow_anonymous


def _exposed(settings: Settings) -> str | None:
    """Return the setting by which other machines reach the broker, None if there is none."""
    if not is_loopback(settings.bind):
        return f"bind = {settings.bind!r}"
    if settings.http.port is not None and not is_loopback(settings.http.host):
        return f"http.host = {settings.http.host!r}"
    return None


def is_loopback(bind: str) -> bool:
    """Return whether only this machine reaches `bind`. Of names, only `localhost` is trusted."""
    if bind == "localhost":
        return True
    try:
        return ip_address(bind).is_loopback
    except ValueError:
        return False


def refusal_of_name(name: str) -> str | None:
    """Return why `name` is not allowed for a user, or None."""
    if not name or name.startswith("#") or name != name.strip():
        return "a user's name is not empty, does not begin with #, and has no space around it"
    if ":" in name or not name.isprintable():  # surrogates are not printable either
        return "a user's name has no colon and no control characters"
    if len(name.encode()) > NAME_BYTES_MAX:
        return f"a user's name has at most {NAME_BYTES_MAX} bytes"
    return None


def refusal_of_password(password: str) -> str | None:
    """Return why `password` is not allowed, or None."""
    if not password:
        return "a password is not empty"
    if "\0" in password or any("\ud800" <= character <= "\udfff" for character in password):
        return "a password is UTF-8 without NUL: SASL PLAIN could not carry it otherwise"
    return None


def _first_user(settings: Settings) -> tuple[str, str] | None:
    if settings.user is None:
        return None
    if settings.password_file is not None:
        password = _read_password(settings.password_file)
    else:
        assert settings.password is not None  # Settings requires one of the two
        password = settings.password.get_secret_value()
    refusal = refusal_of_name(settings.user) or refusal_of_password(password)
    if refusal is not None:
        raise SettingsError(f"user {settings.user!r}: {refusal}")
    return settings.user, password


def _read_password(file: Path) -> str:
    """Return the file's text, without the line end that an editor leaves."""
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise SettingsError(f"password_file = {str(file)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"password_file = {str(file)!r}: not UTF-8") from None


def _matches(known: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(known, password)
    except (VerificationError, InvalidHashError):
        return False


def _hasher() -> PasswordHasher:
    # Imported here, so that a broker without logins does not load argon2.
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES)


def _parse(file: Path) -> dict[str, Entry]:
    """Return the users of `file` by name. UsersError names the first invalid line."""
    users: dict[str, Entry] = {}
    for number, line in enumerate(_lines(file), start=1):
        if not line or line.startswith("#"):
            continue
        name, _, rest = line.partition(":")
        known, _, mark = rest.partition(":")
        named = refusal_of_name(name) is None
        if not named or not known.startswith("$argon2") or mark not in ("", ADMINISTRATOR):
            raise UsersError(
                f"{file}, line {number}: not `name:hash` or `name:hash:{ADMINISTRATOR}`, as"
                " `jms-broker user add` writes"
            )
        users[name] = Entry(hash=known, administrator=mark == ADMINISTRATOR)
    return users


def _lines(file: Path) -> list[str]:
    try:
        return [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsersError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsersError(f"{file}: not UTF-8") from None


def _replace(file: Path, name: str, line: str | None) -> bool:
    """Replace the line of `name` by `line`, if any, in one step. Return whether there was one.

    The new file has another name until it is complete; that name also prevents two changes at the
    same time.
    """
    target = file.resolve()
    new = target.with_name(f"{target.name}.new")
    try:
        descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise UsersError(f"{new} exists: somebody else changes the users; else remove it") from None
    except OSError as error:
        raise UsersError(f"{new}: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            _parse(target)
            before = _lines(target)
            after = [each for each in before if each.partition(":")[0] != name]
            found = len(after) < len(before)
            if line is not None:
                after.append(line)
            out.writelines(f"{each}\n" for each in after)
            out.flush()
            os.fsync(out.fileno())
        _keep_owner(target, new)
        new.replace(target)
    except OSError as error:
        raise UsersError(f"{new}: {error.strerror}; nothing was changed") from None
    finally:
        new.unlink(missing_ok=True)
    return found


def _keep_owner(old: Path, new: Path) -> None:
    """Keep the owner and mode of `old`, for its readers: root may add users for another account."""
    if not old.exists() or not hasattr(os, "chown"):
        return
    status = old.stat()
    with suppress(PermissionError):  # another account's file, in a folder of ours
        os.chown(new, status.st_uid, status.st_gid)
    new.chmod(status.st_mode & 0o777)
