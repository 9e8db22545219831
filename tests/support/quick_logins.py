"""Users whose logins by SCRAM cost little, for suites that log in hundreds of times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from broker.security.scram_verifier import ITERATIONS_MIN, ScramHash, make_verifier
from broker.security.users import Users

USERS_FILE: Final = "jms-broker.users"


def quick_administrator(folder: Path, name: str, password: str) -> str:
    """Write a users file with an administrator into `folder`; return the setting that names it."""
    users = Users(folder / USERS_FILE)
    users.add(name, password, administrator=True)
    make_quick(users.file, {name: password})
    return f'users_file = "{users.file}"\n'


def make_quick(file: Path, passwords: Mapping[str, str]) -> None:
    """Replace the SCRAM verifiers of some users in a users file by ones of few iterations.

    `passwords` has their passwords by name. The client computes a verifier's iterations, and the
    usual number takes Java 100 ms.
    """
    text = file.read_text()
    for user, password in passwords.items():
        before, name, after = text.partition(f'name = "{user}"\n')
        for hash_ in ScramHash:
            made = make_verifier(hash_, password, iterations=ITERATIONS_MIN)
            key = hash_.value.lower().replace("-", "_")
            after, count = re.subn(rf'{key} = ".*"', f'{key} = "{made.text}"', after, count=1)
            assert count == 1, f"{user} has no verifier for {hash_.value}"
        text = f"{before}{name}{after}"
    file.write_text(text)
