"""The server's side of SCRAM: against independent clients, and against everything malformed."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient

from broker.security.account import NAME_BYTES_MAX
from broker.security.scram import (
    CLIENT_MESSAGE_BYTES_MAX,
    CLIENT_NONCE_CHARS_MAX,
    ScramChallenge,
    ScramExchange,
    ScramFailure,
    ScramStep,
    ScramSuccess,
)
from broker.security.scram_verifier import (
    ITERATIONS,
    SALT_BYTES,
    SALT_BYTES_MAX,
    ScramHash,
    ScramVerifier,
    make_verifier,
)
from tests.support.scram_client import FormulaClient

pytestmark = pytest.mark.requirement("SEC-02")
SHA_256, SHA_512 = ScramHash.SHA_256, ScramHash.SHA_512
SECRET = b"s" * 32

SASL_CHALLENGE_BYTES_MAX = 512 - 8 - 3 - 3 - 5
"""Bytes of a challenge in a SASL frame of 512: header, descriptor, list and the binary's size."""

ACCOUNTS = {
    name: {hash_: make_verifier(hash_, password, iterations=4096) for hash_ in ScramHash}
    for name, password in (("ada", "engine"), ("a,b=c", "x"), ("älice", "grüße"))
}


def find(name: str, hash_: ScramHash) -> Sequence[ScramVerifier]:
    return [ACCOUNTS[name][hash_]] if name in ACCOUNTS else []


def exchange(hash_: ScramHash = SHA_256) -> ScramExchange:
    return ScramExchange(hash_, find, salt_secret=SECRET)


def challenge(step: ScramStep) -> bytes:
    assert isinstance(step, ScramChallenge), step
    assert len(step.data) <= SASL_CHALLENGE_BYTES_MAX
    return step.data


def reason(step: ScramStep) -> str:
    assert isinstance(step, ScramFailure), step
    return step.reason


# ---- logins ---------------------------------------------------------------------------------

LOGINS = [
    pytest.param("ada", "engine", True, id="the right password"),
    pytest.param("ada", "Engine", False, id="a wrong password"),
    pytest.param("ada", "e", False, id="a short password"),
    pytest.param("a,b=c", "x", True, id="a name with a comma and an equals sign"),
    pytest.param("älice", "grüße", True, id="more than ASCII"),
    pytest.param("eve", "engine", False, id="an unknown user"),
]


@pytest.mark.parametrize("hash_", ScramHash)
@pytest.mark.parametrize(("name", "password", "enters"), LOGINS)
def test_a_client_of_scramp(hash_: ScramHash, name: str, password: str, enters: bool) -> None:
    server, client = exchange(hash_), ScramClient([hash_.value], name, password)
    client.set_server_first(challenge(server.start(client.get_client_first().encode())).decode())
    step = server.answer(client.get_client_final().encode())
    if not enters:
        assert step == ScramFailure(f"user {name!r}: unknown, or the password is wrong", name)
        return
    client.set_server_final(challenge(step).decode())
    assert server.answer(b"") == ScramSuccess(name)
    assert server.user == name


@pytest.mark.parametrize("hash_", ScramHash)
@pytest.mark.parametrize(("password", "enters"), [("engine", True), ("wrong", False)])
def test_a_client_that_shares_no_code(hash_: ScramHash, password: str, enters: bool) -> None:
    server, client = exchange(hash_), FormulaClient(hash_, "ada", password)
    step = server.answer(client.final(challenge(server.start(client.first()))))
    assert isinstance(step, ScramChallenge) is enters
    if isinstance(step, ScramChallenge):
        assert client.knows(step.data)
        assert server.answer(b"") == ScramSuccess("ada")


def test_the_vector_of_rfc_7677() -> None:
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    pencil = make_verifier(SHA_256, "pencil", salt=salt, iterations=4096)
    nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    server = ScramExchange(SHA_256, lambda *_: [pencil], salt_secret=SECRET, nonce=nonce)
    first = server.start(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert challenge(first) == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = server.answer(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert challenge(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.answer(b"") == ScramSuccess("user")


HEADERS = [
    pytest.param("n,,", "ada", True, id="no channel binding"),
    pytest.param("y,,", "ada", True, id="a client that could bind, if we offered it"),
    pytest.param("n,a=ada,", "ada", True, id="authorized as oneself"),
    pytest.param("y,a=ada,", "ada", True, id="the same, with a client that could bind"),
    pytest.param("n,a=a=2Cb=3Dc,", "a=2Cb=3Dc", True, id="the same, escaped"),
    pytest.param("n,a=bob,", "ada", False, id="authorized as another"),
    pytest.param("n,a=ADA,", "ada", False, id="authorized as another, in capitals"),
    pytest.param("n,a=,", "ada", False, id="an empty authorization id"),
]


@pytest.mark.parametrize(("header", "user", "enters"), HEADERS)
def test_authorization_ids(header: str, user: str, enters: bool) -> None:
    password = "engine" if user == "ada" else "x"
    server, client = exchange(), FormulaClient(SHA_256, user, password, header=header)
    step = server.start(client.first())
    if not enters:
        assert "may not act for another" in reason(step)
        return
    challenge(server.answer(client.final(challenge(step))))
    assert isinstance(server.answer(b""), ScramSuccess)


def test_a_header_that_changes_on_the_way_is_refused() -> None:
    """A man in the middle who adds an authorization id, or takes the flag away."""
    for sent, meant in (("n,a=ada,", "n,,"), ("n,,", "y,,"), ("y,,", "n,a=ada,")):
        server = exchange()
        step = server.start(FormulaClient(SHA_256, "ada", "engine", header=sent).first())
        final = FormulaClient(SHA_256, "ada", "engine", header=meant).final(challenge(step))
        assert "channel bindings" in reason(server.answer(final))


# ---- a password that is being replaced ------------------------------------------------------


@pytest.mark.parametrize(
    ("password", "enters"), [("new", True), ("old", True), ("older", False), ("", False)]
)
@pytest.mark.parametrize("hash_", ScramHash)
def test_two_passwords_may_be_right(hash_: ScramHash, password: str, enters: bool) -> None:
    salt = bytes(SALT_BYTES)
    both = [make_verifier(hash_, each, salt=salt, iterations=4096) for each in ("new", "old")]
    server = ScramExchange(hash_, lambda *_: both, salt_secret=SECRET)
    client = FormulaClient(hash_, "ada", password)
    step = server.answer(client.final(challenge(server.start(client.first()))))
    assert isinstance(step, ScramChallenge) is enters
    if isinstance(step, ScramChallenge):
        assert client.knows(step.data)


# ---- users that do not exist ----------------------------------------------------------------


def parts(server_first: bytes) -> dict[str, str]:
    return dict(each.split("=", 1) for each in server_first.decode().split(","))


@pytest.mark.attack("A5")
@pytest.mark.parametrize("hash_", ScramHash)
def test_an_unknown_user_gets_the_challenge_of_a_real_one(hash_: ScramHash) -> None:
    real = make_verifier(hash_, "x")
    server = ScramExchange(hash_, lambda *_: [real], salt_secret=SECRET)
    known = parts(challenge(server.start(b"n,,n=ada,r=abc")))
    unknown = parts(challenge(exchange(hash_).start(b"n,,n=eve,r=abc")))
    assert list(known) == list(unknown)
    assert {key: len(text) for key, text in known.items()} == {
        key: len(text) for key, text in unknown.items()
    }
    assert known["i"] == unknown["i"] == str(ITERATIONS)


@pytest.mark.attack("A5")
def test_the_salt_of_an_unknown_user_stays_the_same() -> None:
    salts = {parts(challenge(exchange().start(b"n,,n=eve,r=abc")))["s"] for _ in range(3)}
    assert len(salts) == 1
    for other in (
        exchange().start(b"n,,n=eva,r=abc"),
        exchange(SHA_512).start(b"n,,n=eve,r=abc"),
        ScramExchange(SHA_256, find, salt_secret=b"t" * 32).start(b"n,,n=eve,r=abc"),
    ):
        assert parts(challenge(other))["s"] not in salts


def test_the_nonce_of_the_server_is_never_the_same() -> None:
    nonces = {parts(challenge(exchange().start(b"n,,n=ada,r=abc")))["r"] for _ in range(5)}
    assert len(nonces) == 5
    assert all(each.startswith("abc") and len(each) == 3 + 24 for each in nonces)


# ---- malformed input (`docs/design/hostile-input.md` A4) -------------------------------------

FIRSTS = [
    pytest.param(b"", "two parts", id="nothing"),
    pytest.param(b"n", "two parts", id="a flag alone"),
    pytest.param(b"n,", "two parts", id="one comma"),
    pytest.param(b"n,,", "Malformed", id="no attributes"),
    pytest.param(b",,n=ada,r=abc", "GS2 flag", id="no flag"),
    pytest.param(b"x,,n=ada,r=abc", "GS2 flag", id="an unknown flag"),
    pytest.param(b"N,,n=ada,r=abc", "GS2 flag", id="a flag in capitals"),
    pytest.param(b"p=tls-unique,,n=ada,r=abc", "channel binding", id="channel binding"),
    pytest.param(b"p=tls-exporter,,n=ada,r=abc", "channel binding", id="of TLS 1.3"),
    pytest.param(b"p=,,n=ada,r=abc", "channel binding", id="of no type"),
    pytest.param(b"p=\xc3\xa4,,n=ada,r=abc", "channel binding", id="of a type beyond ASCII"),
    pytest.param(b"p,,n=ada,r=abc", "GS2 flag", id="without its type"),
    pytest.param(b"n,ada,n=ada,r=abc", "begins with a=", id="an authorization id without a="),
    pytest.param(b"n,a==,n=ada,r=abc", "for another", id="one that is escaped wrongly"),
    pytest.param(b"n,,n=ada", "Malformed", id="no nonce"),
    pytest.param(b"n,,r=abc", "Malformed", id="no name"),
    pytest.param(b"n,,r=abc,n=ada", "Malformed", id="the wrong order"),
    pytest.param(b"n,,n=,r=abc", "Malformed", id="an empty name"),
    pytest.param(b"n,,n=ada,r=", "Malformed", id="an empty nonce"),
    pytest.param(b"n,,n=\xc2\xad,r=abc", "empty", id="a name that SASLprep empties"),
    pytest.param(b"n,,n=a=b,r=abc", "'='", id="an equals sign that is not escaped"),
    pytest.param(b"n,,n=a=2c,r=abc", "'='", id="an escape in small letters"),
    pytest.param(b"n,,n=a\0b,r=abc", "NUL", id="NUL in the name"),
    pytest.param(b"n,,n=a\x07b,r=abc", "control", id="a control character in the name"),
    pytest.param(b"n,,n=a\xff,r=abc", "UTF-8", id="a name that is not UTF-8"),
    pytest.param("n,,n=a\N{PILE OF POO},r=abc".encode(), "unassigned", id="a name with an emoji"),
    pytest.param("n,,n=\u0627a,r=abc".encode(), "bidi", id="a name of two directions"),
    pytest.param(b"n,,n=ada,r=a b", "Nonce", id="a space in the nonce"),
    pytest.param(b"n,,n=ada,r=\xc3\xa4", "Nonce", id="a nonce beyond ASCII"),
    pytest.param(b"n,,n=ada,r=a,r=b", "Duplicate", id="two nonces"),
    pytest.param(b"n,,n=ada,n=bob,r=a", "Duplicate", id="two names"),
    pytest.param(b"n,,m=x,n=ada,r=abc", "'m'", id="a mandatory extension"),
    pytest.param(b"n,,n=ada,r=abc,m=x", "'m'", id="a mandatory extension at the end"),
    pytest.param(b"n,,n=ada,r=abc,i=2147483648", "Malformed", id="iterations of the client's"),
    pytest.param(b"n,,n=ada,r=abc,s=AAAA", "Malformed", id="a salt of the client's"),
    pytest.param(b"n,,n=ada,r=abc,p=AAAA", "Malformed", id="a proof in the first message"),
    pytest.param(b"n,,n=ada,r=abc,v=AAAA", "Malformed", id="a server's proof"),
    pytest.param(b"n,,n=ada,r=abc,e=other-error", "Malformed", id="a server's error"),
    pytest.param(b"n,,n=ada,r=abc,", "Malformed", id="a comma at the end"),
    pytest.param(b"n,,n=ada,,r=abc", "Malformed", id="an empty attribute"),
    pytest.param(b"n,,nada,r=abc", "Malformed", id="an attribute without ="),
    pytest.param(b"n,,1=ada,r=abc", "Malformed", id="an attribute that is no letter"),
    pytest.param(b"\0ada\0engine", "two parts", id="a response of PLAIN"),
    pytest.param(b"c=biws,r=abc,p=AAAA", "begins with a=", id="a final message"),
    pytest.param(b"," * 2_000, "flag", id="commas"),
    pytest.param(b"n,,n=" + b"a" * (NAME_BYTES_MAX + 1) + b",r=abc", "255", id="a long name"),
    pytest.param(b"n,,n=ada,r=" + b"x" * (CLIENT_NONCE_CHARS_MAX + 1), "256", id="a long nonce"),
    pytest.param(
        b"n,,n=ada,r=abc,x=" + b"x" * CLIENT_MESSAGE_BYTES_MAX, "2048", id="a long message"
    ),
    pytest.param(b"\xff" * 1_048_576, "2048", id="a MiB"),
]


@pytest.mark.attack("A4")
@pytest.mark.parametrize(("message", "told"), FIRSTS)
def test_a_first_message_is_refused(message: bytes, told: str) -> None:
    server = exchange()
    assert told in reason(server.start(message))
    assert "out of turn" in reason(server.answer(b"")), "the exchange is over"


def test_the_limits_can_be_reached() -> None:
    name = "," * NAME_BYTES_MAX  # escaped, each comma takes three bytes
    salt = bytes(SALT_BYTES_MAX)
    verifier = make_verifier(SHA_512, "x", salt=salt, iterations=4096)
    server = ScramExchange(SHA_512, lambda *_: [verifier], salt_secret=SECRET)
    escaped = name.replace(",", "=2C")
    client = FormulaClient(
        SHA_512, escaped, "x", header=f"n,a={escaped},", nonce="x" * CLIENT_NONCE_CHARS_MAX
    )
    assert len(client.first()) < CLIENT_MESSAGE_BYTES_MAX
    final = client.final(challenge(server.start(client.first())))
    assert len(final) < CLIENT_MESSAGE_BYTES_MAX
    challenge(server.answer(final))
    assert server.answer(b"") == ScramSuccess(name)


PROOF = b64encode(bytes(32))

FINALS = [
    # %r is the nonce of the exchange
    pytest.param(b"", "Malformed", id="nothing"),
    pytest.param(b"c=biws,r=%r", "Malformed", id="no proof"),
    pytest.param(b"c=biws,p=" + PROOF, "Malformed", id="no nonce"),
    pytest.param(b"r=%r,p=" + PROOF, "Malformed", id="no channel binding"),
    pytest.param(b"r=%r,c=biws,p=" + PROOF, "Malformed", id="the wrong order"),
    pytest.param(b"c=biws,r=%r,p=" + PROOF + b",x=y", "Malformed", id="something behind the proof"),
    pytest.param(b"c=biws,r=%r,p=", "Malformed", id="an empty proof"),
    pytest.param(b"c=biws,r=%r,p=?", "base 64", id="a proof that is not base64"),
    pytest.param(b"c=biws,r=%r,p=AAA", "base 64", id="a proof without its padding"),
    pytest.param(b"c=biws,r=%r,p=AAAA", "wrong", id="a short proof"),
    pytest.param(b"c=biws,r=%r,p=" + b64encode(bytes(33)), "wrong", id="a long proof"),
    pytest.param(b"c=biws,r=%r,p=" + PROOF, "wrong", id="a proof of zeros"),
    pytest.param(b"c=biws,r=%r,x=y,p=" + PROOF, "wrong", id="an extension that may be ignored"),
    pytest.param(b"c=?,r=%r,p=" + PROOF, "channel binding", id="a binding that is not base64"),
    pytest.param(b"c=eSws,r=%r,p=" + PROOF, "channel bindings", id="another header"),
    pytest.param(b"c=cD10bHMtdW5pcXVlLCw=,r=%r,p=" + PROOF, "bindings", id="a binding at last"),
    pytest.param(b"c=biws,r=abc,p=" + PROOF, "nonce", id="the nonce of the client alone"),
    pytest.param(b"c=biws,r=%rx,p=" + PROOF, "nonce", id="a longer nonce"),
    pytest.param(b"c=biws,r= ,p=" + PROOF, "Nonce", id="a nonce that is none"),
    pytest.param(b"m=x,c=biws,r=%r,p=" + PROOF, "'m'", id="a mandatory extension"),
    pytest.param(b"c=biws,r=%r,m=x,p=" + PROOF, "'m'", id="a mandatory extension inside"),
    pytest.param(b"c=biws,r=%r,i=1,p=" + PROOF, "Malformed", id="iterations of the client's"),
    pytest.param(b"c=biws,c=biws,r=%r,p=" + PROOF, "Duplicate", id="two bindings"),
    pytest.param(b"c=biws,r=%r,p=" + PROOF + b",p=" + PROOF, "Duplicate", id="two proofs"),
    pytest.param(b"c=biws,r=%r,p=\xff", "UTF-8", id="not UTF-8"),
    pytest.param(b"c=biws,r=%r,p=\0", "NUL", id="NUL"),
    pytest.param(b"n,,n=ada,r=abc", "Malformed", id="the first message again"),
    pytest.param(b"x" * (CLIENT_MESSAGE_BYTES_MAX + 1), "2048", id="a long message"),
]


@pytest.mark.attack("A4")
@pytest.mark.parametrize("user", ["ada", "eve"])
@pytest.mark.parametrize(("message", "told"), FINALS)
def test_a_final_message_is_refused(user: str, message: bytes, told: str) -> None:
    """Known and unknown users are refused alike."""
    server = exchange()
    first = challenge(server.start(f"n,,n={user},r=abc".encode()))
    message = message.replace(b"%r", parts(first)["r"].encode())
    assert told in reason(server.answer(message))
    assert "out of turn" in reason(server.answer(b"")), "a second attempt takes a new exchange"


@pytest.mark.attack("A4")
def test_messages_out_of_turn() -> None:
    assert "out of turn" in reason(exchange().answer(b"c=biws,r=abc,p=AAAA"))
    server, client = exchange(), FormulaClient(SHA_256, "ada", "engine")
    step = server.start(client.first())
    assert "out of turn" in reason(server.start(client.first()))
    assert "out of turn" in reason(server.answer(client.final(challenge(step))))


def test_the_proof_of_the_server_is_acknowledged_by_an_empty_response() -> None:
    server, client = exchange(), FormulaClient(SHA_256, "ada", "engine")
    challenge(server.answer(client.final(challenge(server.start(client.first())))))
    assert "not empty" in reason(server.answer(b"x"))
    assert "out of turn" in reason(server.answer(b"")), "it is too late"


@pytest.mark.attack("A4")
def test_a_proof_is_good_for_its_exchange_alone() -> None:
    one, other = exchange(), exchange()
    client = FormulaClient(SHA_256, "ada", "engine")
    final = client.final(challenge(one.start(client.first())))
    challenge(other.start(client.first()))
    assert "nonce" in reason(other.answer(final))


def test_an_error_of_the_users_is_not_hidden() -> None:
    def fails(name: str, hash_: ScramHash) -> Sequence[ScramVerifier]:
        raise KeyError(name, hash_)

    with pytest.raises(KeyError):
        ScramExchange(SHA_256, fails, salt_secret=SECRET).start(b"n,,n=ada,r=abc")


@pytest.mark.attack("A4")
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_nothing_but_a_step_comes_of_any_bytes(first: bytes, final: bytes) -> None:
    server = exchange()
    server.start(b"n,,n=ada," + first)
    assert isinstance(server.answer(b"c=biws," + final), ScramFailure)
    assert isinstance(exchange().start(first), ScramChallenge | ScramFailure)
