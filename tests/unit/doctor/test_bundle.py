"""The bundle of the doctor has what helps, and no secret."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Final

import pytest

from broker.doctor.bundle import LOG_BYTES, BundleContent, Masking, masking_of, write_bundle
from broker.doctor.finding import DoctorFinding
from broker.settings import given_settings

SECRETS: Final = [
    "of-the-first-user",
    "of-the-key",
    "of-the-database",
    "of-the-url",
    "of-a-logged-url",
    "of-a-logged-setting",
    "of-a-header",
    "of-a-variable",
]
TOKEN: Final = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzaG9wIn0.c2lnbmF0dXJl"
HASH: Final = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "broker.log"
    lines = [
        "broker ready url=amqp://127.0.0.1:5672",
        "connected to amqp://shop:of-a-logged-url@db.example/x",
        'password = "of-a-logged-setting"',
        "Authorization: Bearer of-a-header",
        f"renewed {TOKEN}",
        f"user shop {HASH}",
        "client says of-the-first-user",
    ]
    file.write_text("\n".join(lines))
    return file


@pytest.mark.requirement("OPS-13")
def test_no_secret_is_in_it(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "of-a-variable")
    password = tmp_path / "key-password"
    password.write_text("of-the-key\n")
    tls = {"certificate": "c.pem", "key": "k.pem", "key_password_file": password}
    settings = given_settings(
        store="postgresql://broker:of-the-database@db.example/broker",
        user="ann",
        password="of-the-first-user",
        tls=tls,
    )
    finding = DoctorFinding(
        code="D06", check="store", level="FAIL", finding="amqp://x:of-the-url@h", remedy="none"
    )
    content = BundleContent(
        findings=[finding], settings=settings, log=log, store={"name": "of-a-variable"}
    )
    masking = masking_of(settings, "of-the-url", None)
    write_bundle(tmp_path / "bundle.zip", content, masking)
    with zipfile.ZipFile(tmp_path / "bundle.zip") as bundle:
        texts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert set(texts) == {
        *("findings.json", "versions.json", "settings.json", "store.json", "broker.log")
    }
    for secret in [*SECRETS, TOKEN, HASH]:
        assert secret not in "".join(texts.values())
    assert json.loads(texts["settings.json"])["user"] == "ann"
    assert json.loads(texts["settings.json"])["store"].endswith("@db.example/broker")
    assert "broker ready url=amqp://127.0.0.1:5672" in texts["broker.log"]
    assert json.loads(texts["findings.json"])[0]["code"] == "D06"
    assert "jms-broker" in json.loads(texts["versions.json"])


def test_it_is_for_its_user_alone_and_a_new_file(tmp_path: Path) -> None:
    file = tmp_path / "bundle.zip"
    content = BundleContent(findings=[], settings=None)
    write_bundle(file, content, Masking([]))
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        write_bundle(file, content, Masking([]))


def test_a_long_log_is_cut_at_a_line(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text("first\n" + "x" * 99 + "\n" + "y" * 99 + ("\n" + "z" * 99) * (LOG_BYTES // 100))
    told = BundleContent(findings=[], settings=None, log=log).texts(Masking([]))["broker.log"]
    assert len(told) <= LOG_BYTES
    assert set(told.splitlines()) == {"z" * 99}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a b", "a b", id="no secret"),
        pytest.param("x-y-x", "***-y-***", id="a known one, twice"),
        pytest.param("amqp://u:p@h", "amqp://u:***@h", id="a URL"),
        pytest.param("amqp://u:p@q@h/y", "amqp://u:***@h/y", id="a password with @"),
        pytest.param("token: abc", "token: ***", id="an assignment"),
        pytest.param("passwords cross it", "passwords cross it", id="only the word"),
    ],
)
def test_masking(text: str, expected: str) -> None:
    assert Masking(["x", ""]).text(text) == expected
    assert Masking(["x"]).value({"k": [text, 1]}) == {"k": [expected, 1]}
