"""Checks at the start that clients can log in at every listener."""

from __future__ import annotations

from typing import Final

from broker.amqp.sasl import EXTERNAL
from broker.listener_settings import ListenerSettings
from broker.net.login import SCRAM, Login
from broker.security.authenticate import where_exposed
from broker.security.entrance import Entrance
from broker.settings import Settings, SettingsError

ELSEWHERE: Final = "192.0.2.1"
"""An address of another machine, for documentation (RFC 5737)."""


def check_offers(settings: Settings, login: Login) -> None:
    """Raise SettingsError if a listener offers no mechanism, or none by which a user can log in."""
    lacking = [] if login.anonymous or login.plain_always else login.users.without_scram()
    for listener in settings.listeners():
        exposed = None if listener.tls is not None else where_exposed(listener)
        if lacking and exposed is not None:
            names = ", ".join(lacking[:3]) + (", …" if len(lacking) > 3 else "")
            raise SettingsError(
                f"{exposed} lets other machines in without TLS, so it offers only SCRAM, for which"
                f" these users have no verifier: {names}. Set their passwords anew with"
                ' `jms-broker user passwd NAME`, or set plain = "always": passwords then cross the'
                " network readable"
            )
        if not _offers(listener, login):
            raise SettingsError(_refusal(listener, exposed))


def _offers(listener: ListenerSettings, login: Login) -> set[str]:
    """Return the mechanisms by which some client can log in at `listener`."""
    is_local = where_exposed(listener) is None
    client = Entrance(
        listener=listener.name,
        kind=listener.kind,
        host=listener.bind if is_local else ELSEWHERE,
        is_tls=listener.tls is not None,
    )
    found = set(login.offered(client))
    if not login.users.everyone_has_scram():
        found.difference_update(SCRAM)
    asks = listener.tls is not None and listener.tls.client_certificates != "no"
    if asks and (listener.mechanisms is None or EXTERNAL in listener.mechanisms):
        found.add(EXTERNAL)
    return found


def _refusal(listener: ListenerSettings, exposed: str | None) -> str:
    chosen = "" if listener.mechanisms is None else f" of {', '.join(listener.mechanisms)}"
    if exposed is not None:
        return (
            f"{exposed} lets other machines in without TLS, and offers none{chosen} there: set"
            ' kind = "amqps" with certificate and key, or plain = "always": passwords and tokens'
            " then cross the network readable"
        )
    return (
        f"listener {listener.name!r} offers no mechanism{chosen} by which a client can log in:"
        " name others in mechanisms, or add the users, or the client_ca, that they need"
    )
