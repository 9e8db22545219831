"""Fixtures of all unit tests: the environment's broker settings do not reach them."""

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from broker.security import new_verifiers
from broker.security.passwords import hash_of
from broker.security.scram_verifier import ScramHash, ScramVerifier, make_verifier


@pytest.fixture(autouse=True, scope="session")
def no_broker_variables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as variables:
        for name in [name for name in os.environ if name.upper().startswith("JMS_BROKER_")]:
            variables.delenv(name)
        yield


@cache
def hash_once(password: str) -> str:
    return hash_of(password)


@cache
def verifier_once(hash_: ScramHash, password: str) -> ScramVerifier:
    return make_verifier(hash_, password)


@pytest.fixture(autouse=True)
def verifiers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make new verifiers of a password once for all tests, since they take a core for 80 ms.

    Two users with the same password then have the same salt. Tests of the verifiers override this.
    """

    def made(hash_: ScramHash, password: str, **options: Any) -> ScramVerifier:
        known = {name: value for name, value in options.items() if value is not None}
        return make_verifier(hash_, password, **known) if known else verifier_once(hash_, password)

    monkeypatch.setattr(new_verifiers, "hash_of", hash_once)
    monkeypatch.setattr(new_verifiers, "make_verifier", made)
