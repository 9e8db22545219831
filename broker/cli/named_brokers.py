"""Contexts: named brokers, one of which commands talk to if they are told no other.

They are in a file that only its owner may read, since a URL may have a password. A context counts
as the variables of the environment would: JMS_BROKER_URL, JMS_BROKER_CA, and so on.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from broker.cli.broker_url import MANAGEMENT_SCHEMES, split_url
from broker.cli.client_tls import CA_VARIABLE, CERT_VARIABLE, KEY_VARIABLE

URL_VARIABLE: Final = "JMS_BROKER_URL"

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700

TYPED: Final = ("--url", "--config", "--shard")
"""Options that say which broker a command is about, so that no context counts."""


class ContextError(Exception):
    """A context that cannot be used, or a file of contexts. The text says what to do."""


@dataclass(frozen=True, kw_only=True)
class NamedBroker:
    """One context: the URL of a broker, the user to log in as, and the files of TLS."""

    url: str
    user: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def needs_password(self) -> bool:
        """Return whether a login needs a password that is not in the URL."""
        parts = split_url(self.url, MANAGEMENT_SCHEMES)
        has_user = self.user is not None or bool(parts.username)
        return has_user and self.cert is None and (self.user is not None or not parts.password)

    def variables(self, password: str | None) -> dict[str, str]:
        """Return the variables of the environment that the context stands for."""
        from broker.cli.requests import with_user

        url = self.url
        if self.user is not None or password is not None:
            username = split_url(url, MANAGEMENT_SCHEMES).username
            user = self.user or (None if username is None else unquote(username))
            url = with_user(url, user, password)
        found = {
            URL_VARIABLE: url,
            CA_VARIABLE: self.ca,
            CERT_VARIABLE: self.cert,
            KEY_VARIABLE: self.key,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Contexts:
    """All contexts by name, the current one, and the one that was current before; "" for none."""

    brokers: Mapping[str, NamedBroker] = field(default_factory=dict)
    current: str = ""
    previous: str = ""

    def chosen(self) -> NamedBroker | None:
        """Return the current context, None if there is none."""
        return self.brokers.get(self.current)

    def with_broker(self, name: str, broker: NamedBroker) -> Contexts:
        """Return the contexts with one that is added or replaced; the first one is current."""
        if NAME.fullmatch(name) is None:
            raise ContextError(
                f"{name!r:.70} is no name of a context: letters, digits and . _ - behind the first"
            )
        added = replace(self, brokers={**self.brokers, name: broker})
        return added if self.current else replace(added, current=name)

    def using(self, name: str) -> Contexts:
        """Return the contexts with another current one. KeyError if there is none of that name."""
        if name not in self.brokers:
            raise KeyError(name)
        if name == self.current:
            return self
        return replace(self, current=name, previous=self.current)

    def without(self, name: str) -> Contexts:
        """Return the contexts without one. KeyError if there is none of that name."""
        left = dict(self.brokers)
        del left[name]
        current, previous = (each if each != name else "" for each in (self.current, self.previous))
        return Contexts(brokers=left, current=current, previous=previous)


def contexts_file() -> Path:
    """Return the file of contexts: below XDG_CONFIG_HOME, or ~/.config."""
    home = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(home) if home else Path.home() / ".config"
    return folder / "jms-broker" / "contexts.json"


def read_contexts() -> Contexts:
    """Return the contexts of the file, none without a file. ContextError if it is damaged."""
    file = contexts_file()
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        brokers = {name: NamedBroker(**each) for name, each in content["contexts"].items()}
        current, previous = str(content["current"]), str(content["previous"])
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise ContextError(f"{file}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ContextError(f"{file}: damaged ({error}): mend or remove it") from None
    return Contexts(brokers=brokers, current=current, previous=previous)


@contextmanager
def contexts_locked() -> Iterator[None]:
    """Let no other process change the contexts within the block. ContextError if that fails."""
    folder = contexts_file().parent
    try:
        folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ContextError(f"{error.filename}: {error.strerror}") from None
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_contexts(contexts: Contexts) -> None:
    """Replace the file, for its owner alone. ContextError leaves it as it was.

    The caller holds `contexts_locked` from the reading of the contexts on.
    """
    file = contexts_file()
    new = file.with_name(f"{file.name}.new-{os.getpid()}")
    content = {
        "current": contexts.current,
        "previous": contexts.previous,
        "contexts": {name: asdict(each) for name, each in contexts.brokers.items()},
    }
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                out.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise ContextError(f"{error.filename}: {error.strerror}") from None


# -- the command that is typed


def takes_context(command: Any, arguments: Sequence[str]) -> bool:
    """Return whether the command that `arguments` select reads the URL of a broker, and has none.

    `command` is the group of all commands, as click has it.
    """
    if os.environ.get(URL_VARIABLE) or "--help" in arguments or "-h" in arguments:
        return False
    if any(each.partition("=")[0] in TYPED for each in arguments):
        return False
    for each in arguments:
        inner = getattr(command, "commands", {}).get(each)
        if inner is None:
            break
        command = inner
    return any(each.envvar == URL_VARIABLE for each in command.params)


@contextmanager
def counting(broker: NamedBroker, password: str | None) -> Iterator[None]:
    """Let a context count for the block: as variables that are not set in the environment."""
    added = {
        name: value
        for name, value in broker.variables(password).items()
        if not os.environ.get(name)
    }
    with variables_set(added):
        yield


@contextmanager
def variables_set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
