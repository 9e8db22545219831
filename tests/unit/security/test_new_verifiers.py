"""Verifiers of a new password: which are made, and what is refused with a remedy."""

import pytest

from broker.security.account import UsersError
from broker.security.new_verifiers import new_scram, new_verifiers
from broker.security.passwords import matches
from broker.security.scram_verifier import ITERATIONS, ScramHash, make_verifier


@pytest.mark.parametrize(
    ("scram", "hashes"), [(True, set(ScramHash)), (False, set())], ids=["with SCRAM", "without"]
)
def test_a_password_has_a_hash_and_verifiers(scram: bool, hashes: set[ScramHash]) -> None:
    made = new_verifiers("alice", "sesame", scram=scram)
    assert made.password is not None
    assert matches(made.password, "sesame")
    assert set(made.scram) == hashes


def test_salts_are_random_unless_others_are_given() -> None:
    old = make_verifier(ScramHash.SHA_512, "one", iterations=4096)
    one, other = (new_scram("alice", "two", {old.hash: old}) for _ in range(2))
    assert one[old.hash] == other[old.hash]
    assert (one[old.hash].salt, one[old.hash].iterations) == (old.salt, 4096)
    assert one[ScramHash.SHA_256].salt != other[ScramHash.SHA_256].salt
    assert one[ScramHash.SHA_256].iterations == ITERATIONS


REFUSED = [
    pytest.param("alice", "", True, "a password is not empty", id="no password"),
    pytest.param("alice", "a\0", False, "without NUL", id="NUL, with SCRAM or without"),
    pytest.param(
        "alice", "\N{PILE OF POO}", True, "another password, or .* --no-scram", id="an emoji"
    ),
    pytest.param(
        "\N{ROMAN NUMERAL NINE}", "x", True, "another name, or .* --no-scram", id="such a name"
    ),
]


@pytest.mark.parametrize(("name", "password", "scram", "told"), REFUSED)
def test_a_refusal_says_what_to_do(name: str, password: str, scram: bool, told: str) -> None:
    with pytest.raises(UsersError, match=told):
        new_verifiers(name, password, scram=scram)
