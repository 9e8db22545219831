"""SCRAM verifiers: their text, which is PostgreSQL's, and how they are made."""

from base64 import b64encode

import pytest

from broker.security.scram_verifier import (
    ITERATIONS,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SALT_BYTES,
    SALT_BYTES_MAX,
    SALT_BYTES_MIN,
    ScramHash,
    make_verifier,
    read_verifier,
    refusal_of_scram_name,
)

SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
STORED = "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
SERVER = "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
POSTGRESQL = f"SCRAM-SHA-256$4096:{SALT}${STORED}:{SERVER}"
"""The verifier that PostgreSQL computes for the password and salt of RFC 7677."""


def test_the_text_is_that_of_postgresql() -> None:
    verifier = read_verifier(POSTGRESQL, ScramHash.SHA_256)
    assert verifier.text == POSTGRESQL
    made = make_verifier(ScramHash.SHA_256, "pencil", salt=verifier.salt, iterations=4096)
    assert made == verifier


@pytest.mark.parametrize("hash_", ScramHash)
def test_a_new_verifier_has_a_salt_of_its_own(hash_: ScramHash) -> None:
    one, other = (make_verifier(hash_, "sesame") for _ in range(2))
    assert one.salt != other.salt
    assert (len(one.salt), one.iterations) == (SALT_BYTES, ITERATIONS)
    assert len(one.stored_key) == len(one.server_key) == hash_.key_bytes
    assert read_verifier(one.text, hash_) == one


def text(*, iterations: object = 4096, salt: str = SALT, stored: str = STORED) -> str:
    return f"SCRAM-SHA-256${iterations}:{salt}${stored}:{SERVER}"


def base64(size: int) -> str:
    return b64encode(bytes(size)).decode()


BAD_TEXTS = [
    pytest.param("", "not SCRAM-SHA-256", id="nothing"),
    pytest.param("md5abc", "not SCRAM-SHA-256", id="another kind of hash"),
    pytest.param(text().replace("256", "512"), "not SCRAM-SHA-256", id="another hash"),
    pytest.param(text().replace("256", "1"), "not SCRAM-SHA-256", id="SHA-1"),
    pytest.param(text() + ":x", "not SCRAM-SHA-256", id="something behind it"),
    pytest.param(text(iterations="x"), "not SCRAM-SHA-256", id="no number"),
    pytest.param(text(iterations="04096"), "not SCRAM-SHA-256", id="a zero before it"),
    pytest.param(text(iterations="4096" + "0" * 20), "not SCRAM-SHA-256", id="a huge number"),
    pytest.param(text(iterations=ITERATIONS_MIN - 1), "iterations", id="too few iterations"),
    pytest.param(text(iterations=ITERATIONS_MAX + 1), "iterations", id="too many iterations"),
    pytest.param(text(salt="ä" * 20), "salt is not base64", id="a salt that is not base64"),
    pytest.param(text(stored="x"), "stored key is not base64", id="a key that is not base64"),
    pytest.param(text(stored=base64(31)), "keys have 32", id="a short key"),
    pytest.param(text(salt=base64(SALT_BYTES_MIN - 1)), "salt has", id="a short salt"),
    pytest.param(text(salt=base64(SALT_BYTES_MAX + 1)), "salt has", id="a long salt"),
]


@pytest.mark.parametrize(("given", "told"), BAD_TEXTS)
def test_a_text_that_is_no_verifier(given: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_verifier(given, ScramHash.SHA_256)


@pytest.mark.parametrize("size", [SALT_BYTES_MIN, SALT_BYTES_MAX])
def test_salts_of_other_sizes(size: int) -> None:
    assert len(read_verifier(text(salt=base64(size)), ScramHash.SHA_256).salt) == size


PASSWORDS = [
    pytest.param("sesame", None, id="ASCII"),
    pytest.param("grüße", None, id="letters beyond ASCII"),
    pytest.param("a b", None, id="a space"),
    pytest.param("p\N{PILE OF POO}", "unassigned", id="an emoji, which Unicode 3.2 has not"),
    pytest.param("a\N{ZERO WIDTH SPACE}\a", "control", id="a control character"),
    pytest.param("\N{SOFT HYPHEN}", "drop every character", id="nothing that SASLprep keeps"),
]


@pytest.mark.parametrize(("password", "told"), PASSWORDS)
def test_passwords_that_scram_can_carry(password: str, told: str | None) -> None:
    if told is None:
        assert make_verifier(ScramHash.SHA_256, password, iterations=4096).iterations == 4096
    else:
        with pytest.raises(ValueError, match=told):
            make_verifier(ScramHash.SHA_256, password, iterations=4096)


def test_passwords_that_saslprep_makes_equal_have_one_verifier() -> None:
    salt = bytes(SALT_BYTES)
    one, other = (
        make_verifier(ScramHash.SHA_256, each, salt=salt, iterations=4096)
        for each in ("\N{ROMAN NUMERAL NINE}", "IX")
    )
    assert one == other


NAMES = [
    pytest.param("alice", None, id="ASCII"),
    pytest.param("a,b=c", None, id="characters that are escaped"),
    pytest.param("älice", None, id="letters beyond ASCII"),
    pytest.param("\N{ROMAN NUMERAL NINE}", "send the name", id="a name that SASLprep changes"),
    pytest.param("a\N{PILE OF POO}", "unassigned", id="an emoji"),
]


@pytest.mark.parametrize(("name", "told"), NAMES)
def test_names_that_scram_can_carry(name: str, told: str | None) -> None:
    refusal = refusal_of_scram_name(name)
    assert (refusal is None) if told is None else (told in str(refusal))
