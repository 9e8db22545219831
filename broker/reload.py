"""Applies new settings to a running broker: all that need no restart, or none if one is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from broker.address_settings import PlaceSettings
from broker.app import App
from broker.net.connection_admission import connection_limits
from broker.net.log import configure_logging
from broker.parts import access_of, limits_of, login_of
from broker.policies import policies_of
from broker.routing.errors import RoutingError
from broker.settings import ADOPT, Settings, SettingsError

AT_ONCE: Final = frozenset(
    {
        *("users_file", "allow_anonymous", "user", "password", "password_file", "plain"),
        *("acl_file", "ownership", "log"),
    }
)
"""Settings that apply from the reload on, to every login, right and line of the log."""

FOR_NEW_CONNECTIONS: Final = frozenset(
    {
        *("max_frame_size", "channel_max", "handle_max", "incoming_window", "max_message_size"),
        *("partial_bytes_max", "idle_time_out_ms", "handshake_timeout_ms", "stall_timeout_ms"),
        *("transactions_max", "transaction_operations_max", "transaction_bytes_max"),
        *("transaction_timeout_ms", "credit"),
        *("connections_max", "unauthenticated_max", "unauthenticated_source_max"),
        "limit_loopback",
    }
)
"""Settings of connections and links: existing ones keep theirs."""

FOR_NEW_NODES: Final = frozenset(
    {
        *("default_kind", "auto_create", "address", "queue", "topic"),
        *("auto_create_max", "auto_delete_after_ms"),
        *(name for name in PlaceSettings.model_fields if name in Settings.model_fields),
    }
)
"""Settings of queues and topics: existing ones keep theirs until the next start."""

RELOADABLE: Final = AT_ONCE | FOR_NEW_CONNECTIONS | FOR_NEW_NODES


@dataclass(frozen=True)
class Reloaded:
    """The changed settings, by name: those a reload has applied, and those that need a restart."""

    applied: list[str]
    need_restart: list[str]


def reload(app: App, load: Callable[[], Settings]) -> Reloaded | None:
    """Read the settings again, apply them, and log the result. Return None if they are wrong."""
    done: Reloaded | None = None
    problem = ""
    try:
        done = apply(app, load())
    except SettingsError as error:
        problem = "; ".join(str(error).splitlines())
    log = structlog.get_logger("broker")
    if done is None:
        log.error("settings not reloaded, the old ones stay", reason=problem)
        return None
    for refusal in app.reload_tls():
        log.error("certificates not reloaded, the former ones stay", reason=refusal)
    log.info("settings reloaded", applied=_listed(done.applied), **_who_may_enter(app))
    for names, text in (
        (FOR_NEW_CONNECTIONS, "these settings count for new connections and links"),
        (FOR_NEW_NODES, "these settings count for queues and topics that are made from now on"),
    ):
        chosen = [name for name in done.applied if name in names]
        if chosen:
            log.info(text, settings=_listed(chosen))
    if done.need_restart:
        log.warning(
            "changed settings need a restart of the broker", settings=_listed(done.need_restart)
        )
    return done


def _who_may_enter(app: App) -> dict[str, object]:
    if app.login is None:
        return {}
    rules = [rule for rule in app.container.access.rules if not rule.is_built_in]
    return {
        "users": len(app.login.users.names()),
        "anonymous": app.login.anonymous,
        "rules": len(rules),
    }


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none has changed"


def apply(app: App, wanted: Settings) -> Reloaded:
    """Apply the settings of `wanted` that need no restart. If it is wrong, raise SettingsError.

    Nothing is changed then.
    """
    old = app.settings
    changed = [
        name for name in Settings.model_fields if getattr(old, name) != getattr(wanted, name)
    ]
    fixed = [name for name in changed if name not in RELOADABLE]
    settings = wanted.model_copy(update={name: getattr(old, name) for name in fixed})
    login = login_of(settings)
    access = access_of(settings)
    limits = limits_of(settings)
    router = app.container.router
    try:
        router.adopt(policies_of(settings), app.journal.batch)
    except RoutingError as refusal:
        raise SettingsError(f"a declared queue or topic: {refusal}") from None
    if app.login is not None:
        app.login.adopt(login)
    app.container.adopt_access(access)
    app.container.adopts_subscriptions = settings.ownership == ADOPT
    app.container.limits = limits
    app.container.credit = settings.credit
    app.listeners.stall_timeout_ms = settings.stall_timeout_ms
    app.listeners.admission.limits = connection_limits(settings)
    configure_logging(settings.log.format, settings.log.level)
    app.settings = settings
    app.container.run_round()
    return Reloaded([name for name in changed if name not in fixed], fixed)
