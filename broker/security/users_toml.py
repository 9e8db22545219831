"""The users file as TOML: what its text means.

    salt_secret = "…"

    [[user]]
    name = "alice"
    roles = ["admin"]
    enabled = true
    password = "$argon2id$…"
    scram_sha_256 = "SCRAM-SHA-256$32768:…"
    scram_sha_512 = "SCRAM-SHA-512$32768:…"
    credential_version = 1750000000000
    changed_at = 2025-06-15T15:06:40Z
    mechanisms = ["SCRAM-SHA-512"]
    certificates = ["alice.example"]
    previous = {until = 2025-06-15T16:06:40Z, password = "$argon2id$…"}

Of a user only `name` is required. `users_edit.py` writes this text.
"""

from __future__ import annotations

import re
import tomllib
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, NoReturn, TypeAlias, TypeVar

from broker.security.account import (
    FormerVerifiers,
    UserAccount,
    UsersError,
    Verifiers,
    refusal_of_certificates,
    refusal_of_mechanisms,
    refusal_of_name,
    refusal_of_roles,
)
from broker.security.passwords import refusal_of_hash
from broker.security.scram_verifier import ScramHash, ScramVerifier, read_verifier
from broker.security.users_lines import is_of_lines, read_lines, version_of

T = TypeVar("T")

SALT_SECRET_BYTES: Final = 32

SALT_SECRET: Final = "salt_secret"  # noqa: S105 - the name of a key
USER: Final = "user"
SCRAM_KEYS: Final = {
    ScramHash.SHA_256: "scram_sha_256",
    ScramHash.SHA_512: "scram_sha_512",
}
VERIFIER_KEYS: Final = ("password", *SCRAM_KEYS.values())
USER_KEYS: Final = (
    *("name", "roles", "enabled", *VERIFIER_KEYS, "credential_version", "changed_at"),
    *("mechanisms", "certificates", "previous"),
)

TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    str: "a string",
    list: "a list",
    dict: "a table",
    datetime: "a date with a time",
}

RefusalOf: TypeAlias = Callable[[tuple[str, ...]], str | None]

USER_LINE: Final = re.compile(r"^\[\[\s*user\s*\]\]", re.MULTILINE)
SYNTAX_ERROR: Final = re.compile(r"(?P<what>.*) \(at (?P<place>.*)\)", re.DOTALL)


@dataclass(frozen=True)
class UserTable:
    """The content of a users file. `salt_secret` is None if the file has none yet."""

    accounts: Mapping[str, UserAccount] = field(default_factory=dict)
    salt_secret: bytes | None = None


def read_users(text: str) -> UserTable:
    """Return the users in `text`: TOML, or lines as earlier versions wrote them.

    UsersError names the line, or the user and the key, that is invalid.
    """
    if is_of_lines(text):
        return UserTable(read_lines(text))
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = SYNTAX_ERROR.fullmatch(str(error))
        told = str(error) if found is None else f"{found['place']}: {found['what']}"
        raise UsersError(f"{told}; the file of users is TOML") from None
    top = TableReader("", content)
    top.only(SALT_SECRET, USER)
    accounts: dict[str, UserAccount] = {}
    for number, table in enumerate(_tables(content.get(USER, [])), start=1):
        account = _account(table, number)
        if account.name in accounts:
            raise UsersError(f"user {account.name!r} is there twice")
        accounts[account.name] = account
    return UserTable(accounts, _salt_secret(top))


def split(text: str) -> tuple[str, list[str]]:
    """Return the text above the first user, and that of each user with the comments behind it."""
    starts = [found.start() for found in USER_LINE.finditer(text)]
    header = text[: starts[0]] if starts else text
    return header, [text[start:end] for start, end in pairwise([*starts, len(text)])]


class UsersReader:
    """Reads a users file again and again: only the users whose text has changed.

    Of 1,000 users, all take 110 ms to read, and one takes 0.1.
    """

    def __init__(self) -> None:
        self._known: Mapping[str, UserAccount] = {}
        """The users of the last file, by their text."""

    def read(self, text: str) -> UserTable:
        """Return what `read_users` returns, or raise the UsersError that it raises."""
        if is_of_lines(text):
            return read_users(text)
        header, blocks = split(text)
        try:
            top = read_users(header)
            known = {block: self.account_in(block) for block in blocks}
        except UsersError:
            return read_users(text)  # its error names the place in the whole text
        accounts = {account.name: account for account in known.values()}
        if top.accounts or len(accounts) < len(blocks):
            return read_users(text)
        self._known = known
        return UserTable(accounts, top.salt_secret)

    def account_in(self, block: str) -> UserAccount:
        """Return the user in one part of `split`. UsersError if it is invalid, or no whole table.

        A part is no whole table if what looks like the beginning of one is inside a string.
        """
        known = self._known.get(block)
        if known is not None:
            return known
        accounts = list(read_users(block).accounts.values())
        if len(accounts) != 1:
            raise UsersError(f"{len(accounts)} users in one table")
        return accounts[0]


def values_of(account: UserAccount) -> dict[str, object]:
    """Return the values of a user's keys, in the order in which they are written.

    Those of `previous` are a dict. Keys without a value are left out.
    """
    values: dict[str, object] = {
        "name": account.name,
        "roles": list(account.roles),
        "enabled": account.enabled,
        **_values_of_verifiers(account.verifiers),
        "credential_version": account.credential_version,
    }
    if account.changed_at is not None:
        values["changed_at"] = account.changed_at
    if account.mechanisms is not None:
        values["mechanisms"] = list(account.mechanisms)
    if account.certificates:
        values["certificates"] = list(account.certificates)
    if account.previous is not None:
        until = account.previous.until
        values["previous"] = {"until": until, **_values_of_verifiers(account.previous.verifiers)}
    return values


def _values_of_verifiers(verifiers: Verifiers) -> dict[str, object]:
    values: dict[str, object] = {}
    if verifiers.password is not None:
        values["password"] = verifiers.password
    for hash_, key in SCRAM_KEYS.items():
        if hash_ in verifiers.scram:
            values[key] = verifiers.scram[hash_].text
    return values


class TableReader:
    """Reads the values of one table; UsersError names the table and the key that is invalid."""

    def __init__(self, where: str, table: Mapping[str, object]) -> None:
        self._where: Final = f"{where}, " if where else ""
        self._table: Final = table

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raise UsersError for a key of this table."""
        raise UsersError(f"{self._where}{key}: {reason}")

    def only(self, *known: str) -> None:
        """Raise UsersError if the table has other keys than `known`, which would be ignored."""
        for key in self._table:
            if key not in known:
                self.refuse(key, f"there is no such key; known: {', '.join(known)}")

    def value(self, key: str, kind: type[T]) -> T | None:
        """Return a value of the type `kind`, a key of TYPE_NAMES; None if the table has none."""
        value = self._table.get(key)
        if value is not None and type(value) is not kind:  # in Python, true is an int
            self.refuse(key, f"not {TYPE_NAMES[kind]}")
        return value

    def time(self, key: str) -> datetime | None:
        """Return a time in UTC; None if the table has none."""
        value = self.value(key, datetime)
        if value is None:
            return None
        if value.tzinfo is None:
            self.refuse(key, "has no zone: write Z behind it, for UTC")
        return value.astimezone(UTC)

    def texts(self, key: str, refusal_of: RefusalOf) -> tuple[str, ...] | None:
        """Return a list of strings that `refusal_of` allows; None if the table has none."""
        value = self.value(key, list)
        if value is None:
            return None
        texts = tuple(each for each in value if isinstance(each, str))
        if len(texts) < len(value):
            self.refuse(key, "not a list of strings")
        refusal = refusal_of(texts)
        if refusal is not None:
            self.refuse(key, refusal)
        return texts

    def verifiers(self) -> Verifiers:
        """Return the verifiers of the keys VERIFIER_KEYS."""
        password = self.value("password", str)
        refusal = None if password is None else refusal_of_hash(password)
        if refusal is not None:
            self.refuse("password", refusal)
        scram: dict[ScramHash, ScramVerifier] = {}
        for hash_, key in SCRAM_KEYS.items():
            text = self.value(key, str)
            try:
                if text is not None:
                    scram[hash_] = read_verifier(text, hash_)
            except ValueError as error:
                self.refuse(key, str(error))
        return Verifiers(password=password, scram=scram)


def _tables(value: object) -> Iterator[Mapping[str, object]]:
    tables = value if isinstance(value, list) else [value]
    for each in tables:
        if not isinstance(each, dict):
            raise UsersError("user is not a list of tables: write [[user]] above each user")
        yield each


def _salt_secret(top: TableReader) -> bytes | None:
    text = top.value(SALT_SECRET, str)
    if text is None:
        return None
    try:
        secret = b64decode(text, validate=True)
    except ValueError:
        secret = b""
    if len(secret) != SALT_SECRET_BYTES:
        top.refuse(
            SALT_SECRET,
            f"not {SALT_SECRET_BYTES} bytes in base64: remove the line, and the next change of a"
            " user writes another",
        )
    return secret


def account_of(values: Mapping[str, object]) -> UserAccount:
    """Return the user of values such as `values_of` returns. UsersError if one is invalid."""
    return _account(values, 1)


def _account(table: Mapping[str, object], number: int) -> UserAccount:
    unnamed = TableReader(f"user number {number}", table)
    name = unnamed.value("name", str)
    if name is None:
        unnamed.refuse("name", "missing")
    refusal = refusal_of_name(name)
    if refusal is not None:
        unnamed.refuse("name", refusal)
    reader = TableReader(f"user {name!r}", table)
    reader.only(*USER_KEYS)
    verifiers = reader.verifiers()
    version = reader.value("credential_version", int)
    return UserAccount(
        name=name,
        roles=reader.texts("roles", refusal_of_roles) or (),
        enabled=reader.value("enabled", bool) is not False,
        mechanisms=reader.texts("mechanisms", refusal_of_mechanisms),
        certificates=reader.texts("certificates", refusal_of_certificates) or (),
        verifiers=verifiers,
        previous=_previous(reader, f"user {name!r}, previous"),
        credential_version=version_of(verifiers, name) if version is None else version,
        changed_at=reader.time("changed_at"),
    )


def _previous(reader: TableReader, where: str) -> FormerVerifiers | None:
    table = reader.value("previous", dict)
    if table is None:
        return None
    inside = TableReader(where, table)
    inside.only("until", *VERIFIER_KEYS)
    until = inside.time("until")
    if until is None:
        inside.refuse("until", "missing")
    return FormerVerifiers(until=until, verifiers=inside.verifiers())
