"""Password hashes: what argon2 is given, and which passwords are allowed."""

import pytest
from argon2 import extract_parameters

from broker.security.passwords import (
    HASH_CHARS_MAX,
    NOBODY,
    hash_of,
    matches,
    refusal_of_hash,
    refusal_of_password,
)

PASSWORDS = [
    pytest.param("x", True, id="short"),
    pytest.param("a: b#", True, id="signs"),
    pytest.param("", False, id="empty"),
    pytest.param("a\0b", False, id="NUL"),
    pytest.param("a\udc80", False, id="half a character"),
]


@pytest.mark.parametrize(("password", "fine"), PASSWORDS)
def test_passwords(password: str, fine: bool) -> None:
    assert (refusal_of_password(password) is None) is fine


def test_a_hash_fits_its_password_and_no_other() -> None:
    known = hash_of("sesame")
    assert matches(known, "sesame")
    assert not matches(known, "Sesame")
    assert known != hash_of("sesame"), "each has a salt of its own"


def test_a_user_that_does_not_exist_costs_the_same_hash() -> None:
    assert extract_parameters(NOBODY) == extract_parameters(hash_of("sesame"))


def test_a_hash_that_argon2_cannot_read_fits_nothing() -> None:
    assert not matches("$argon2id$broken", "broken")


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        pytest.param(NOBODY, True, id="a hash"),
        pytest.param("$argon2i$v=19$m=8", True, id="one of another kind"),
        pytest.param("sesame", False, id="a password in the clear"),
        pytest.param("$2b$12$abc", False, id="bcrypt"),
        pytest.param("$argon2id$ä", False, id="beyond ASCII"),
        pytest.param("$argon2" + "x" * HASH_CHARS_MAX, False, id="too long"),
    ],
)
def test_what_is_a_hash(text: str, fine: bool) -> None:
    assert (refusal_of_hash(text) is None) is fine
