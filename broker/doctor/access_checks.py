"""Checks of how clients get in, and of their rights: D10 to D15."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from broker.doctor.checked_broker import CheckedBroker
from broker.doctor.finding import (
    CheckResult,
    failure,
    named,
    not_checked,
    warning,
    well,
)
from broker.doctor.machine_checks import NO_SETTINGS
from broker.parts import access_of
from broker.security.account import ADMIN_ROLE
from broker.security.authenticate import (
    admits_anonymous,
    exposed_listener,
    is_loopback,
    where_exposed,
)
from broker.security.rules_check import NO_ROLE, USER_WORD
from broker.security.scram_verifier import ScramHash
from broker.settings import SettingsError

SEE_D12: Final = "D12 says why the users cannot be read"
SEE_D14: Final = "D14 says why the rules cannot be read"


def plain_listeners(checked: CheckedBroker) -> CheckResult:
    """Look for listeners without TLS that other machines reach (D10)."""
    if checked.settings is None:
        return not_checked(NO_SETTINGS)
    found = {
        each.name: where_exposed(each)
        for each in checked.settings.listeners()
        if not each.is_encrypted and not each.is_proxied
    }
    exposed = {name: where for name, where in found.items() if where is not None}
    if not exposed:
        return well("other machines reach no listener without TLS")
    text = f"other machines reach listeners without TLS: {named(exposed)}"
    remedy = "bind them to 127.0.0.1, and add a [[listener]] of kind amqps or wss"
    if checked.settings.plain == "always":
        return failure(f'{text}; plain = "always" lets passwords cross the network', remedy)
    return warning(text, remedy)


def http_without_tls(checked: CheckedBroker) -> CheckResult:
    """Look whether other machines reach HTTP without TLS (D11)."""
    if checked.settings is None:
        return not_checked(NO_SETTINGS)
    http = checked.settings.http
    if http.port is None:
        return well("HTTP is off")
    if http.tls or is_loopback(http.host):
        return well(f"HTTP {'has TLS' if http.tls else 'is for this machine alone'}")
    return failure(
        f"other machines reach HTTP at {http.host} without TLS: passwords cross the network",
        "set http.tls = true, or http.host = '127.0.0.1'",
    )


def users_without_scram(checked: CheckedBroker) -> CheckResult:
    """Look for users with a password that cannot log in by SCRAM (D12)."""
    told = _told_users(checked, _lacks_scram)
    if told is None and checked.settings is None:
        return not_checked(NO_SETTINGS)
    names = set(told or ())
    if checked.settings is not None:
        try:
            names.update(checked.users.without_scram())
        except SettingsError as error:
            return failure(f"the users cannot be read: {error}", "correct the file or the setting")
    if not names:
        return well("each user with a password can log in by SCRAM")
    return warning(
        f"without verifiers for SCRAM: {named(names)}; SCRAM is offered to no user",
        "set their passwords again (`jms-broker user passwd NAME`), or let them log in by PLAIN"
        " over TLS once",
    )


def users_without_roles(checked: CheckedBroker) -> CheckResult:
    """Look for users without any role, of their own or of the rules (D13)."""
    try:
        problems = _problems(checked)
    except SettingsError:
        return not_checked(SEE_D14)
    if problems is None:
        return not_checked(NO_SETTINGS)
    names = [
        text.removeprefix(USER_WORD).removesuffix(NO_ROLE) for text in problems if _is_user(text)
    ]
    if not names:
        return well("each user has a role")
    return warning(
        f"without any role: {named(names)}", "give them one: `jms-broker user add NAME --role ROLE`"
    )


def dead_rules(checked: CheckedBroker) -> CheckResult:
    """Look for rules that never decide, and for roles that no user has (D14)."""
    try:
        problems = _problems(checked)
    except SettingsError as error:
        return failure(str(error), "jms-broker acl check FILE")
    if problems is None:
        return not_checked(NO_SETTINGS)
    found = [text for text in problems if not _is_user(text)]
    if not found:
        return well("each rule can decide")
    return warning(f"rules: {named(found)}", "`jms-broker acl check` lists them: remove or mend")


def _problems(checked: CheckedBroker) -> set[str] | None:
    """Return the problems of the rules of the running broker, and of those of the settings.

    None if nothing shows any rules. SettingsError if the rules of the settings are wrong.
    """
    told = None if checked.running is None else checked.running.ask("CHECK", "acl", "rules")
    if told is None and checked.settings is None:
        return None
    found = [] if told is None else cast("Sequence[Mapping[str, object]]", told["problems"])
    problems = {_in_words(str(each["rule"]), str(each["problem"])) for each in found}
    if checked.settings is not None:
        rules = access_of(checked.settings)
        names = [each.name for each in checked.settings.listeners()]
        own = rules.check(users=_roles(checked), listeners=[*names, "http"])
        problems.update(_in_words(each.rule, each.text) for each in own)
    return problems


def _in_words(rule: str, problem: str) -> str:
    return f"{rule}: {problem}" if rule else problem


def _is_user(problem: str) -> bool:
    """Return whether a problem is that of a user without any role."""
    return problem.startswith(USER_WORD) and problem.endswith(NO_ROLE)


def anonymous_access(checked: CheckedBroker) -> CheckResult:
    """Look whether clients of other machines get in without a login (D15)."""
    if checked.settings is None:
        return not_checked(NO_SETTINGS)
    settings = checked.settings
    try:
        users = checked.users
    except SettingsError:
        return not_checked(SEE_D12)
    try:
        admits = admits_anonymous(settings, users)
    except SettingsError as error:
        return failure(f"the broker does not start: {error}", "add a user")
    exposed = exposed_listener(settings)
    if admits and exposed is not None:
        return failure(
            f"clients of other machines get in without a login: allow_anonymous, and {exposed}",
            "remove allow_anonymous, and add users (`jms-broker user add NAME`)",
        )
    return well("clients without a login do not get in from other machines")


def _told_users(
    checked: CheckedBroker, lacks: Callable[[Mapping[str, object]], bool]
) -> list[str] | None:
    """Return the users of the running broker that lack something; None if it does not show them."""
    users = checked.told("user")
    return None if users is None else [str(each["name"]) for each in users if lacks(each)]


def _lacks_scram(user: Mapping[str, object]) -> bool:
    """Return whether a user of a running broker has a password, and misses a verifier for SCRAM."""
    names = [each.value for each in ScramHash]
    allowed = user["mechanisms"]
    wanted = names if allowed is None else [each for each in names if each in _texts(allowed)]
    if user["source"] == "settings":
        return False  # its verifiers are made from the password of the settings
    return user["enabled"] is True and user["password"] is True and _misses(wanted, user["scram"])


def _misses(wanted: Iterable[str], given: object) -> bool:
    return not set(wanted) <= set(_texts(given))


def _texts(value: object) -> Sequence[str]:
    return cast("Sequence[str]", value)


def _roles(checked: CheckedBroker) -> dict[str, tuple[str, ...]]:
    """Return the roles of each user of the settings; none if they cannot be read, as D12 says."""
    try:
        users = checked.users
    except SettingsError:
        return {}
    found = {name: account.roles for name, account in users.accounts().items()}
    return found if users.first is None else {**found, users.first: (ADMIN_ROLE,)}
