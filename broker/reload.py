"""Applies new settings to a running broker: all that need no restart, or none if one is wrong."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, get_args

import structlog

from broker.address_settings import NAMES
from broker.amqp.limits import Limits
from broker.app import App
from broker.audit.record import BROKER, FAILED, Actor, AuditEvent
from broker.listener_settings import ListenerSettings
from broker.log_events import (
    NOT_RELOADED,
    RELOADED_CONNECTIONS,
    RELOADED_NODES,
    RESTART_NEEDED,
    SETTINGS_RELOADED,
)
from broker.log_lines import configure_logging, write_line
from broker.log_settings import LogSettings
from broker.management.configuration import (
    APPLIED,
    FOR_NEW,
    NEEDS_RESTART,
    UNCHANGED,
    ConfigurationSource,
    ReloadEffects,
    WrongSettings,
)
from broker.net.connection_admission import connection_limits
from broker.net.listener import PreparedListener
from broker.net.login import Login
from broker.parts import access_of, limits_of, login_of
from broker.policies import policies_of
from broker.routing.errors import RoutingError
from broker.security.access import AccessRules
from broker.settings import ADOPT, Settings, SettingsError
from broker.settings_errors import ENVIRONMENT_PREFIX, without_password_parameters
from broker.stats import RELOAD_FAILED, RELOADED

AT_ONCE: Final = frozenset(
    {
        *("users_file", "allow_anonymous", "user", "password", "password_file", "plain"),
        *("acl_file", "ownership", "log", "oauth", "drain"),
    }
)
"""Settings that apply from the reload on, to every login, right, line of the log, and drain."""

FOR_NEW_CONNECTIONS: Final = frozenset(
    {
        *("max_frame_size", "channel_max", "handle_max", "incoming_window", "max_message_size"),
        *("partial_bytes_max", "idle_time_out_ms", "handshake_timeout_ms", "stall_timeout_ms"),
        *("transactions_max", "transaction_operations_max", "transaction_bytes_max"),
        *("transaction_timeout_ms", "credit", "resume_max_s"),
        *("connections_max", "unauthenticated_max", "unauthenticated_source_max"),
        *("limit_loopback", "tls", "listener"),
    }
)
"""Settings of connections and links: existing ones keep theirs. Of `listener` the tables `tls`."""

FOR_NEW_NODES: Final = frozenset(
    {"default_kind", "address", "queue", "topic", "auto_create_max", *NAMES}
)
"""Settings of queues and topics: existing ones keep theirs until the next start."""

RELOADABLE: Final = AT_ONCE | FOR_NEW_CONNECTIONS | FOR_NEW_NODES


LOG_LEVELS: Final = get_args(LogSettings.model_fields["level"].annotation)

PASSWORD_OF_USER: Final = re.compile(r"(://[^:/@]*:).*(?=@)")
"""The password of the user in the URL of a store. It may have each character that a URL has
elsewhere, as `/`: the library that reads the URL does not demand that they are percent-encoded."""


@dataclass(frozen=True)
class Reloaded:
    """The changed settings, by name: those a reload has applied, and those that need a restart.

    `certificates` tells the certificates of each listener with TLS, and what is new, by its name.
    """

    applied: list[str]
    need_restart: list[str]
    certificates: Mapping[str, str] = field(default_factory=dict)

    def told(self) -> ReloadEffects:
        """Return the result as management tells it."""
        return ReloadEffects(self.effects(), self.certificates)

    def effects(self) -> dict[str, str]:
        """Return the effect on each setting, by its name."""
        effects = dict.fromkeys(Settings.model_fields, UNCHANGED)
        for name in self.applied:
            effects[name] = FOR_NEW if name in FOR_NEW_NODES else APPLIED
        return {**effects, **dict.fromkeys(self.need_restart, NEEDS_RESTART)}


@dataclass(frozen=True)
class Plan:
    """New settings with the parts that are made of them, which replace those in use."""

    settings: Settings
    login: Login
    access: AccessRules
    limits: Limits
    listeners: Sequence[PreparedListener]
    result: Reloaded


def reload(
    app: App,
    load: Callable[[], Settings],
    *,
    actor: Actor = BROKER,
    request_id: str | None = None,
) -> Reloaded | None:
    """Read the settings again, apply them, and log the result. Return None if they are wrong.

    `actor` has asked for it, in the request of that id.
    """
    try:
        return reloaded(app, load, actor=actor, request_id=request_id)
    except SettingsError:
        return None


def reloaded(
    app: App,
    load: Callable[[], Settings],
    *,
    actor: Actor = BROKER,
    request_id: str | None = None,
) -> Reloaded:
    """Do as `reload` does, but raise SettingsError if the settings are wrong."""
    audit = app.container.audit
    before = rules_facts(app.container.access)
    try:
        done = apply(app, load())
    except SettingsError as error:
        app.stats.by.reloads.add(RELOAD_FAILED)
        _tell_failed(app, str(error), actor=actor, request_id=request_id)
        raise
    app.stats.by.reloads.add(RELOADED)
    _log_done(app, done)
    facts = {"applied": done.applied, "need_restart": done.need_restart}
    audit.record(
        AuditEvent(action="config.reloaded", actor=actor, after=facts, request_id=request_id)
    )
    after = rules_facts(app.container.access)
    if before != after:
        audit.record(
            AuditEvent(
                action="rules.reloaded",
                resource=f"rules:{app.settings.acl_file or ''}",
                actor=actor,
                before=before,
                after=after,
                request_id=request_id,
            )
        )
    return done


def _tell_failed(app: App, problem: str, *, actor: Actor, request_id: str | None) -> None:
    reason = "; ".join(problem.splitlines())
    log = structlog.get_logger("broker")
    write_line(log, NOT_RELOADED, reason=reason)
    file = app.settings.acl_file
    is_of_rules = file is not None and str(file) in reason
    app.container.audit.record(
        AuditEvent(
            action="rules.failed" if is_of_rules else "config.failed",
            actor=actor,
            result=FAILED,
            after={"reason": reason},
            request_id=request_id,
        )
    )


def _log_done(app: App, done: Reloaded) -> None:
    log = structlog.get_logger("broker")
    write_line(log, SETTINGS_RELOADED, applied=_listed(done.applied), **_who_may_enter(app))
    for names, event in (
        (FOR_NEW_CONNECTIONS, RELOADED_CONNECTIONS),
        (FOR_NEW_NODES, RELOADED_NODES),
    ):
        chosen = [name for name in done.applied if name in names]
        if chosen:
            write_line(log, event, settings=_listed(chosen))
    if done.need_restart:
        write_line(log, RESTART_NEEDED, settings=_listed(done.need_restart))


def rules_facts(access: AccessRules) -> Mapping[str, object]:
    """Return the numbers of entries of the rules file, and a hash of their content.

    Limits are hashed in the order of the file: their numbers are what refusals name.
    """
    rules = [rule.record() for rule in access.rules if not rule.is_built_in]
    rules.sort(key=lambda each: str(each["id"]))
    roles = {role: sorted(users) for role, users in access.roles.items()}
    limits = [limit.record() for limit in access.limits]
    content = json.dumps([rules, roles, limits], sort_keys=True)
    return {
        "rules": len(rules),
        "roles": len(roles),
        "limits": len(limits),
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
    }


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


def plan(app: App, wanted: Settings) -> Plan:
    """Return what a reload of `wanted` would do. If it is wrong, raise SettingsError.

    A file of rules whose content has changed counts as a changed setting.
    """
    old = app.settings
    changed = [
        name for name in Settings.model_fields if getattr(old, name) != getattr(wanted, name)
    ]
    fixed = _fixed(old, wanted, changed)
    settings = wanted.model_copy(update={name: getattr(old, name) for name in fixed})
    package = None if app.login is None else app.login.package
    login = login_of(
        settings, table=app.accounts, package=None if package is None else package.chosen
    )
    access = access_of(settings)
    limits = limits_of(settings)
    try:
        app.container.router.check_policies(policies_of(settings))
    except RoutingError as refusal:
        raise SettingsError(f"a declared queue or topic: {refusal}") from None
    listeners = app.prepare_listeners(settings)
    certificates = {each.name: each.certificates for each in listeners if each.certificates}
    applied = [name for name in changed if name not in fixed]
    if "acl_file" not in applied and rules_facts(access) != rules_facts(app.container.access):
        applied.append("acl_file")
    result = Reloaded(applied, fixed, certificates)
    return Plan(settings, login, access, limits, listeners, result)


def _fixed(old: Settings, wanted: Settings, changed: Sequence[str]) -> list[str]:
    """Return the names of the changed settings that need a restart."""
    fixed = {name for name in changed if name not in RELOADABLE}
    if (old.oauth is None) != (wanted.oauth is None):
        fixed.add("oauth")  # it decides which mechanisms there are
    if _without_tls(old.listener) != _without_tls(wanted.listener):
        fixed.add("listener")
    merged = wanted.model_copy(update={name: getattr(old, name) for name in fixed})
    if _lacks_tls(merged):  # a listener that stays needs the table that is gone
        fixed.update(name for name in ("tls", "listener") if name in changed)
    return [name for name in changed if name in fixed]


def _without_tls(listeners: Sequence[ListenerSettings]) -> list[ListenerSettings]:
    return [each.model_copy(update={"tls": None}) for each in listeners]


def _lacks_tls(settings: Settings) -> bool:
    """Return whether HTTP or a listener needs the table tls, which is not there."""
    needed = settings.http.tls or any(
        each.is_encrypted and each.tls is None for each in settings.listener
    )
    return needed and settings.tls is None


def apply(app: App, wanted: Settings) -> Reloaded:
    """Apply the settings of `wanted` that need no restart. If it is wrong, raise SettingsError.

    Nothing is changed then.
    """
    new = plan(app, wanted)
    for listener in new.listeners:
        listener.adopt()
    app.container.router.adopt(policies_of(new.settings), app.journal.batch)
    if app.login is not None:
        app.login.adopt(new.login)
    app.container.adopt_access(new.access)
    app.container.adopts_subscriptions = new.settings.ownership == ADOPT
    app.container.limits = new.limits
    app.container.credit = new.settings.credit
    app.listeners.stall_timeout_ms = new.settings.stall_timeout_ms
    app.listeners.admission.limits = connection_limits(new.settings)
    log = new.settings.log
    configure_logging(log.format, log.level, shard=new.settings.shard_name)
    app.log_level = None
    app.settings = new.settings
    app.container.run_round()
    return new.result


def shown_settings(
    settings: Settings, environment: Mapping[str, str]
) -> Mapping[str, Mapping[str, object]]:
    """Return `value`, `origin` and `reload` (whether one applies it) of each setting, by name.

    Secrets are masked. The origin of a table is `environment` if a variable has a part of it.
    """
    variables = {name.upper() for name in environment}
    values = settings.model_dump(mode="json")
    found: dict[str, Mapping[str, object]] = {}
    for name in Settings.model_fields:
        variable = f"{ENVIRONMENT_PREFIX}{name}".upper()
        origin = "default"
        if name in settings.model_fields_set:
            is_variable = any(each.startswith(f"{variable}_") for each in variables)
            is_variable = variable in variables or is_variable
            origin = "environment" if is_variable else "file or command line"
        found[name] = {
            "value": _masked(values[name]),
            "origin": origin,
            "reload": name in RELOADABLE,
        }
    return found


def _masked(value: object) -> object:
    """Return a value of JSON without the passwords of the URLs in it."""
    if isinstance(value, str):
        return without_password_parameters(PASSWORD_OF_USER.sub(r"\1***", value))
    if isinstance(value, dict):
        return {name: _masked(each) for name, each in value.items()}
    return [_masked(each) for each in value] if isinstance(value, list) else value


class Reloading(ConfigurationSource):
    """Reloads the settings of `app` on a request to management; `load` reads them."""

    def __init__(self, app: App, load: Callable[[], Settings]) -> None:
        self._app: Final = app
        self._load: Final = load

    def values(self) -> Mapping[str, Mapping[str, object]]:
        found = shown_settings(self._app.settings, os.environ)
        if self._app.log_level is None:
            return found
        log = self._app.settings.log.model_dump(mode="json")
        changed = {"value": {**log, "level": self._app.log_level}, "origin": "management"}
        return {**found, "log": {**found["log"], **changed}}

    def set_log_level(self, level: str) -> None:
        """Log lines of `level` and above; raise WrongSettings if there is no such level."""
        if level not in LOG_LEVELS:
            raise WrongSettings(f"no level {level:.50}; there are {', '.join(LOG_LEVELS)}")
        settings = self._app.settings
        configure_logging(settings.log.format, level, shard=settings.shard_name)
        self._app.log_level = level

    def reload(self, *, dry_run: bool, actor: Actor, request_id: str | None) -> ReloadEffects:
        """Apply the settings; raise WrongSettings if they are wrong, with nothing changed."""
        try:
            if dry_run:
                return plan(self._app, self._load()).result.told()
            done = reloaded(self._app, self._load, actor=actor, request_id=request_id)
        except SettingsError as error:
            raise WrongSettings(str(error)) from None
        return done.told()
