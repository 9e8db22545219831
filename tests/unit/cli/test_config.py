"""`jms-broker config`: settings with their sources, and the schema of the settings file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from broker.cli.application import application
from broker.cli.config import BOUNDS, settings_schema
from broker.settings import Settings

pytestmark = pytest.mark.requirement("OPS-17")

FILE = """\
user = "ada"
password = "sesame"
store = "postgresql://ada:sesame@db/broker"
[[address]]
pattern = "orders.*"
max_messages = 7
"""


def shown(config: Path, *options: str) -> dict[str, dict[str, object]]:
    done = CliRunner().invoke(
        application, ["config", "show", "--config", str(config), "--json", *options]
    )
    assert done.exit_code == 0, done.output
    assert "sesame" not in done.output
    return {row["setting"]: row for row in map(json.loads, done.output.splitlines())}


def test_each_setting_is_shown_with_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "broker.toml"
    config.write_text(FILE)
    monkeypatch.setenv("JMS_BROKER_LOG_LEVEL", "debug")
    rows = shown(config, "--origin")
    found = {name: (rows[name]["value"], rows[name]["origin"]) for name in rows}
    assert found["password"] == ("***", str(config))
    assert found["store"] == ("postgresql://***@db/broker", str(config))
    assert found["log.level"] == ("debug", "JMS_BROKER_LOG_LEVEL")
    assert found["drain.timeout_ms"] == (20_000, "defaults")
    assert found["address[0].max_messages"] == (7, str(config))
    assert "address[0].max_bytes" not in found
    assert {name.partition(".")[0].partition("[")[0] for name in rows} == set(Settings.model_fields)


def test_without_the_option_no_source_is_shown(tmp_path: Path) -> None:
    config = tmp_path / "broker.toml"
    config.write_text("port = 1")
    assert shown(config)["port"] == {"setting": "port", "value": 1}


def test_wrong_settings_are_told(tmp_path: Path) -> None:
    config = tmp_path / "broker.toml"
    config.write_text("prot = 1")
    done = CliRunner().invoke(application, ["config", "show", "--config", str(config)])
    assert (done.exit_code, "did you mean port?" in done.output) == (2, True)


def keys(part: object) -> Iterator[str]:
    """Yield the keys of all maps in a schema."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield name
            yield from keys(value)
    elif isinstance(part, list):
        for each in part:
            yield from keys(each)


def test_the_schema_has_every_setting_and_the_bounds_of_numbers() -> None:
    done = CliRunner().invoke(application, ["config", "schema"])
    schema = json.loads(done.output)
    assert schema == settings_schema()
    assert set(schema["properties"]) == set(Settings.model_fields)
    assert schema["additionalProperties"] is False
    port = schema["properties"]["port"]
    assert (port["type"], port["minimum"], port["maximum"]) == ("integer", 0, 65535)
    assert not set(keys(schema)) & set(BOUNDS)
