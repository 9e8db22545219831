"""The users file as earlier versions wrote it: a line `name:hash[:administrator]` for each user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from broker.security.account import (
    ADMIN_ROLE,
    APPLICATION_ROLE,
    UserAccount,
    UsersError,
    Verifiers,
    refusal_of_name,
)
from broker.security.passwords import refusal_of_hash

ADMINISTRATOR: Final = "administrator"
"""The mark behind the hash of a user that may manage the broker."""

TOML_LINE: Final = re.compile(r"""\[|[A-Za-z0-9_"'.-]+\s*=""")
"""The beginning of a line of TOML: a table, or a key and a value."""

NOT_IN_TOML: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
"""Characters that a comment of TOML must not have."""

VERSION_BYTES: Final = 5
"""Bytes of a version that is made of a hash: less than the ms since 1970, which new ones are."""


def is_of_lines(text: str) -> bool:
    """Return whether the users file `text` has lines, not TOML: its first user or key decides."""
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith("#"):
            return ":$argon2" in line or TOML_LINE.match(line) is None
    return False


def read_lines(text: str) -> dict[str, UserAccount]:
    """Return the users of `text` by name. UsersError names the first invalid line."""
    users: dict[str, UserAccount] = {}
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if not line or line.startswith("#"):
            continue
        name, _, rest = line.partition(":")
        known, _, mark = rest.partition(":")
        is_valid = refusal_of_name(name) is None and refusal_of_hash(known) is None
        if not is_valid or mark not in ("", ADMINISTRATOR):
            raise UsersError(
                f"line {number}: not `name:hash` or `name:hash:{ADMINISTRATOR}`, as earlier"
                " versions wrote, and not TOML, as `jms-broker user add` writes"
            )
        verifiers = Verifiers(password=known)
        users[name] = UserAccount(
            name=name,
            roles=(ADMIN_ROLE if mark else APPLICATION_ROLE,),
            verifiers=verifiers,
            credential_version=version_of(verifiers, name),
        )
    return users


def version_of(verifiers: Verifiers, name: str) -> int:
    """Return the version of a user whose file states none: it changes if the hash does."""
    known = verifiers.password or name
    return int.from_bytes(sha256(known.encode()).digest()[:VERSION_BYTES])


def comments_and_names(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each line of `text`: a comment that TOML allows, or an empty line, and the user's name.

    The name is None for a comment or an empty line. A user with several lines is yielded at the
    last, which is the one that `read_lines` returns.
    """
    lines = [line.strip() for line in text.splitlines()]
    last = {line.partition(":")[0]: number for number, line in enumerate(lines)}
    for number, line in enumerate(lines):
        if not line or line.startswith("#"):
            yield NOT_IN_TOML.sub("\N{REPLACEMENT CHARACTER}", line), None
        elif last[line.partition(":")[0]] == number:
            yield "", line.partition(":")[0]
