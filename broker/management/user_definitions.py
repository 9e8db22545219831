"""Definitions of users: what they may do, and only on request what their logins are checked by.

The first user, which the settings name, is none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from broker.management.definition import (
    ADDED,
    CHANGED,
    REFUSED,
    UNCHANGED,
    Definition,
    DefinitionError,
    DefinitionKind,
    DefinitionReader,
    ImportOutcome,
    ImportResult,
    ImportTerms,
    name_in,
    paged,
)
from broker.management.users import LoginRules
from broker.security.account import UserAccount, UsersError
from broker.security.users_toml import USER_KEYS, account_of, values_of

PLAIN_KEYS: Final = ("name", "roles", "enabled", "mechanisms", "certificates")
"""Keys of a definition that are not about passwords."""

OWN: Final = "this is the user that asks: let another administrator change it"
NO_PASSWORD: Final = "it has no password yet: set one with `jms-broker user passwd`"  # noqa: S105


class UserDefinitions(DefinitionKind):
    """The users of the users file and of the store."""

    name = part = "users"
    has_secrets = True

    def __init__(self, accounts: Callable[[], LoginRules]) -> None:
        """`accounts` returns the current users."""
        self._accounts: Final = accounts
        self._changing: Final = asyncio.Lock()

    def page(self, offset: int, count: int, *, secrets: bool) -> tuple[list[Definition], int]:
        users = self._accounts().users
        found = users.accounts()
        chosen = [each for each in paged(found.values(), offset, count) if each.name != users.first]
        return [definition_of_user(each, secrets=secrets) for each in chosen], len(found)

    async def take(
        self, definitions: Sequence[Definition], terms: ImportTerms
    ) -> list[ImportOutcome]:
        loop = asyncio.get_running_loop()
        async with self._changing:
            # in a thread, as each change of the file takes a sync
            return await loop.run_in_executor(
                None, lambda: [self._take(each, terms) for each in definitions]
            )

    def _take(self, definition: Definition, terms: ImportTerms) -> ImportOutcome:
        name = name_in(definition)
        users = self._accounts().users
        try:
            wanted = account_in(definition, secrets=terms.secrets)
            there = users.account(wanted.name)
            account = _merged(there, wanted, secrets=terms.secrets)
            if account == there:
                return ImportOutcome(name=name, result=UNCHANGED)
            if wanted.name == terms.caller.identity.user:
                return ImportOutcome(name=name, result=REFUSED, note=OWN)
            if wanted.name == users.first:
                raise UsersError("the broker's settings have this user")
            if not terms.dry_run:
                users.put(account)
        except (UsersError, DefinitionError) as error:
            return ImportOutcome(name=name, result=REFUSED, note=str(error))
        result: ImportResult = ADDED if there is None else CHANGED
        lacks = there is None and not account.has_password and not account.certificates
        return ImportOutcome(name=name, result=result, note=NO_PASSWORD if lacks else "")


def definition_of_user(account: UserAccount, *, secrets: bool) -> Definition:
    """Return the definition of a user, with its verifiers only if `secrets`."""
    values = values_of(account)
    if not secrets:
        values = {key: values[key] for key in PLAIN_KEYS if key in values}
    return {key: _as_json(value) for key, value in values.items()}


def _as_json(value: object) -> object:
    """Return a value of the users file with times as texts."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Mapping):
        return {key: _as_json(each) for key, each in value.items()}
    return value


def account_in(definition: Definition, *, secrets: bool) -> UserAccount:
    """Return the account that a definition describes. DefinitionError or UsersError if it is wrong.

    Without `secrets` its verifiers are left out, whatever they are.
    """
    DefinitionReader(definition, *USER_KEYS)
    keys = USER_KEYS if secrets else PLAIN_KEYS
    values = {key: definition[key] for key in keys if definition.get(key) is not None}
    for key in ("changed_at", "previous"):
        if key in values:
            values[key] = _with_times(values[key])
    return account_of(values)


def _with_times(value: object) -> object:
    """Return a value of a definition with datetimes in place of their texts."""
    if isinstance(value, Mapping):
        return {key: _with_times(each) if key == "until" else each for key, each in value.items()}
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise DefinitionError(f"{value:.50} is no time such as 2026-01-31T12:00:00+00:00") from None


def _merged(there: UserAccount | None, wanted: UserAccount, *, secrets: bool) -> UserAccount:
    """Return what `there` becomes: without `secrets`, or any verifiers, it keeps its password."""
    if secrets and wanted.has_password:
        return wanted
    if there is None:
        return wanted.changed(datetime.now(UTC))
    merged = replace(
        there,
        roles=wanted.roles,
        enabled=wanted.enabled,
        mechanisms=wanted.mechanisms,
        certificates=wanted.certificates,
    )
    return there if merged == there else merged.changed(datetime.now(UTC))
