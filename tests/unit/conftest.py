"""Fixtures of all unit tests: the environment's broker settings do not reach them."""

import os
from collections.abc import Iterator
from functools import cache

import pytest

from broker.security import new_verifiers
from broker.security.passwords import hash_of
from broker.security.scram_verifier import make_verifier


@pytest.fixture(autouse=True, scope="session")
def no_broker_variables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as variables:
        for name in [name for name in os.environ if name.upper().startswith("JMS_BROKER_")]:
            variables.delenv(name)
        yield


hash_once = cache(hash_of)
verifier_once = cache(make_verifier)


@pytest.fixture(autouse=True)
def verifiers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make new verifiers of a password once for all tests, since they take a core for 80 ms.

    Two users with the same password then have the same salt. Tests of the verifiers override this.
    """
    monkeypatch.setattr(new_verifiers, "hash_of", hash_once)
    monkeypatch.setattr(new_verifiers, "make_verifier", verifier_once)
