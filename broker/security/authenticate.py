"""Decides by the settings which users there are, and whether clients without a login may enter."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from broker.listener_settings import FIRST, ListenerSettings
from broker.security.account import UsersError, refusal_of_name
from broker.security.account_table import AccountTable
from broker.security.passwords import refusal_of_password
from broker.security.users import Users
from broker.settings import Settings, SettingsError

IPV4_LOOPBACK: Final = 127
"""The first byte of the IPv4 addresses by which only this machine is reached (RFC 1122 3.2.1.3)."""


def open_users(settings: Settings, table: AccountTable | None = None) -> Users:
    """Return the users that `settings` name, and those of `table`.

    SettingsError if the broker must not start with these settings.
    """
    if table is not None:
        table.is_shared = settings.ha.enabled
    users = Users(settings.users_file, first=_first_user(settings), table=table)
    try:
        users.is_empty()
    except UsersError as error:
        raise SettingsError(str(error)) from None
    return users


def admits_anonymous(settings: Settings, users: Users) -> bool:
    """Return whether clients without a password may enter. Raise as `anonymous_allowed` does."""
    # an issuer of tokens has users, too, and so has the authenticator of a package
    others = settings.oauth is not None or settings.authenticator is not None
    return anonymous_allowed(settings, users_exist=users.exist() or others)


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


def exposed_listener(settings: Settings) -> str | None:
    """Return the setting by which other machines reach a listener; None if there is none."""
    found = (where_exposed(listener) for listener in settings.listeners())
    return next((each for each in found if each is not None), None)


def where_exposed(listener: ListenerSettings) -> str | None:
    """Return the setting by which other machines reach `listener`; None if they do not."""
    of = "" if listener.name == FIRST else f" of listener {listener.name!r}"
    if not is_loopback(listener.bind):
        return f"bind = {listener.bind!r}{of}"
    if listener.is_proxied:  # through a proxy on this machine
        return f"proxy_protocol = {listener.proxy_protocol!r}{of}"
    return None


def _exposed(settings: Settings) -> str | None:
    """Return the setting by which other machines reach the broker, None if there is none."""
    listener = exposed_listener(settings)
    if listener is not None:
        return listener
    if settings.http.port is not None and not is_loopback(settings.http.host):
        return f"http.host = {settings.http.host!r}"
    return None


def is_loopback(bind: str) -> bool:
    """Return whether only this machine reaches `bind`. Of names, only `localhost` is trusted."""
    if bind == "localhost":
        return True
    try:
        # each connection asks this of its client's address: `ip_address` alone would take 10 µs
        return socket.inet_pton(socket.AF_INET, bind)[0] == IPV4_LOOPBACK
    except (OSError, ValueError):
        return _is_other_loopback(bind)


def _is_other_loopback(bind: str) -> bool:
    """Return whether `bind` is a loopback address of IPv6, or an IPv4 one within it."""
    try:
        return ip_address(bind).is_loopback
    except ValueError:
        return False


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
