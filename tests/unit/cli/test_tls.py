"""`jms-broker tls check` of the files that the settings name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from broker.cli.application import application
from tests.support.certificates import SERVER_NAME, Authority

LISTENER = """
[[listener]]
name = "internet"
kind = "amqps"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    certificate, key = Authority().issue(SERVER_NAME).write(tmp_path, "server")
    found = tmp_path / "broker.toml"
    found.write_text(f'{LISTENER}[listener.tls]\ncertificate = "{certificate}"\nkey = "{key}"\n')
    return found


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(application, ["tls", "check", *map(str, arguments)])


def test_the_settings_are_sound(config: Path) -> None:
    done = check("--config", config)
    header, *rows = done.stdout.splitlines()
    assert (done.exit_code, header) == (0, "result\tsetting\tcheck\tdays\tfinding")
    assert {row.split("\t")[1] for row in rows} == {"listener internet: tls.certificate"}
    assert [row.split("\t")[2] for row in rows] == ["dates", "handshake", "names", "chain"]


def test_a_finding_that_fails(config: Path, tmp_path: Path) -> None:
    (tmp_path / "server.key").unlink()
    done = check("--config", config, "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["result"] == "failed"
    assert "server.key': there is no such file" in told["finding"]


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        pytest.param([], 1, "the settings have no TLS: set certificate and key", id="no TLS"),
        pytest.param(["--ca", "ca.pem"], 2, "--ca is for a connection: give HOST:PORT", id="--ca"),
        pytest.param(["http://localhost"], 2, "write HOST:PORT, with the port", id="a URL"),
        pytest.param(["h:x"], 2, "is no URL of a broker", id="no port"),
        pytest.param(["127.0.0.1:1"], 5, "127.0.0.1:1: Connection refused", id="no broker"),
        pytest.param(["--config", "missing.toml"], 2, "missing.toml: No such", id="no settings"),
    ],
)
def test_errors(arguments: list[str], status: int, expected: str) -> None:
    done = check(*arguments)
    assert (done.exit_code, done.stdout) == (status, "")
    assert expected in done.stderr
