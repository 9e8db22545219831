"""Changes one user in the text of a users file, and keeps what an operator has written there.

Only the changed user's table is written anew, and in it only the keys that differ. Comments at the
end of a table are about the user below it: they stay if the table goes.
"""

from __future__ import annotations

import tomllib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from secrets import token_bytes
from typing import Final, cast

from broker.security.account import UserAccount, UsersError
from broker.security.users_lines import comments_and_names, is_of_lines, read_lines
from broker.security.users_toml import (
    SALT_SECRET,
    SALT_SECRET_BYTES,
    USER,
    USER_KEYS,
    UsersReader,
    split,
    values_of,
)

HEADER: Final = """\
# The users of jms-broker, written by `jms-broker user`. Comments stay.
# salt_secret makes the salts that SCRAM clients get for names that are no users.
"""

NEW_BLOCK: Final = "[[user]]\n"


def changed_text(
    text: str,
    name: str,
    account: UserAccount | None,
    *,
    now: datetime,
    reader: UsersReader | None = None,
) -> str:
    """Return the users file `text` with `account` as the user `name`, or without if that is None.

    Lines are rewritten as TOML. Former passwords whose time has ended by `now` are removed.
    UsersError if the text is invalid, or TOML of a form that cannot be changed. A `reader` that
    has read the text makes it fast.
    """
    reader = UsersReader() if reader is None else reader
    before = dict(reader.read(text).accounts)
    after = {**before, name: account}
    wanted = {each: _without_ended(kept, now) for each, kept in after.items() if kept is not None}
    try:
        changed = _changed(_as_toml(text), wanted, reader)
        done = dict(reader.read(changed).accounts) == wanted
    except UsersError:
        done = False
        changed = ""
    if not done:
        raise UsersError("cannot be changed: write each user as a table below a line [[user]]")
    return changed


def _changed(text: str, wanted: Mapping[str, UserAccount], reader: UsersReader) -> str:
    header, blocks = split(text)
    parts = [_with_secret(header)]
    added = dict(wanted)
    for block in blocks:
        before = reader.account_in(block)
        after = added.pop(before.name, None)
        core, comments = _parted(block)
        if after is None:
            parts.append(comments.lstrip("\n"))
        elif before == after:
            parts.append(block)
        else:
            parts.append(_edited(core, after) + comments)
    for account in added.values():
        parts = [_ended_by_newlines(parts, 2), _edited(NEW_BLOCK, account)]
    return _ended_by_newlines(parts, 1)


def _ended_by_newlines(parts: list[str], count: int) -> str:
    return "".join(parts).rstrip("\n") + "\n" * count


def _as_toml(text: str) -> str:
    """Return the users file `text` as TOML: unchanged if it is, else with a table for each line."""
    if not is_of_lines(text):
        return text
    accounts = read_lines(text)
    parts = [HEADER]
    for comment, name in comments_and_names(text):
        parts.append(f"{comment}\n" if name is None else f"{_edited(NEW_BLOCK, accounts[name])}\n")
    return "".join(parts)


def _with_secret(header: str) -> str:
    """Return the text above the first user with a `salt_secret`."""
    if SALT_SECRET in tomllib.loads(header):
        return header
    secret = b64encode(token_bytes(SALT_SECRET_BYTES)).decode()
    above = _ended_by_newlines([header], 1) if header.strip() else HEADER
    return f'{above}{SALT_SECRET} = "{secret}"\n\n'


def _parted(block: str) -> tuple[str, str]:
    """Split a user's text behind the last line that is neither empty nor a comment."""
    lines = block.splitlines(keepends=True)
    end = len(lines)
    while end > 0 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    core = "".join(lines[:end])
    return (core if core.endswith("\n") else f"{core}\n"), "".join(lines[end:])


def _without_ended(account: UserAccount, now: datetime) -> UserAccount:
    return account if account.former(now) is not None else replace(account, previous=None)


def _edited(core: str, account: UserAccount) -> str:
    """Return a user's text with the values of `account`. Keys whose values stay are not touched."""
    import tomlkit

    document = tomlkit.parse(core)
    (table,) = cast("list[dict[str, object]]", document[USER])
    wanted = values_of(account)
    given = tomllib.loads(core)[USER][0]
    for key in USER_KEYS:
        if key not in wanted:
            table.pop(key, None)
        elif key not in given or given[key] != wanted[key]:
            table[key] = _inline(wanted[key])
    return tomlkit.dumps(document)


def _inline(value: object) -> object:
    """Return `value` as one that is written in the line of its key."""
    import tomlkit

    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table()
    table.update(value)
    return table
