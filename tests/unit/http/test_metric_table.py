"""The alerts and the board use metrics that exist, and promtool accepts what is written for it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from broker.http.metric_table import EVERY, HISTOGRAM
from tests.support.broker import Broker
from tests.support.http import ask, served

CONFIG = Path(__file__).resolve().parents[3] / "config"
RULES = CONFIG / "prometheus" / "jms-broker.rules.yml"
RULES_TEST = CONFIG / "prometheus" / "jms-broker.rules.test.yml"
BOARD = CONFIG / "grafana" / "jms-broker.json"
PAGE = CONFIG.parent / "docs" / "operations" / "metrics.md"

USED = [RULES, RULES_TEST, BOARD, CONFIG / "prometheus" / "prometheus.yml"]
NAME = re.compile(r"\bjms_broker_\w+")


def names() -> set[str]:
    """Return the names of all samples."""
    found = {metric.full_name() for metric in EVERY if metric.type != HISTOGRAM}
    for metric in EVERY:
        if metric.type == HISTOGRAM:
            found |= {f"{metric.full_name()}_{part}" for part in ("bucket", "sum", "count")}
    return found


@pytest.mark.requirement("OPS-04")
@pytest.mark.parametrize("file", USED, ids=lambda file: file.name)
def test_each_metric_that_is_used_exists(file: Path) -> None:
    assert set(NAME.findall(file.read_text())) <= names()


@pytest.mark.requirement("OPS-05")
def test_the_families_that_prometheus_asks_for_exist() -> None:
    text = (CONFIG / "prometheus" / "prometheus.yml").read_text()
    (asked,) = re.findall(r'family: \["([^"]+)"\]', text)
    assert {f"jms_broker_{name}" for name in asked.split(",")} <= names()


@pytest.mark.requirement("OPS-04")
def test_the_page_has_each_alert_and_each_has_a_test() -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    assert len(alerts) == 10
    assert re.findall(r"^\| `(JmsBroker\w+)` \|", PAGE.read_text(), re.MULTILINE) == alerts
    tested = RULES_TEST.read_text()
    assert [name for name in alerts if f'"{name}"' not in tested] == []


@pytest.mark.requirement("OPS-04")
def test_the_board_has_a_place_and_a_query_for_each_panel() -> None:
    panels = json.loads(BOARD.read_text())["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        assert all(NAME.search(target["expr"]) for target in panel["targets"])
    assert len({panel["title"] for panel in panels}) == len({panel["id"] for panel in panels}) == 21


# -- promtool


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not on PATH (Debian has it in the package prometheus)")
    return found


def run(*command: str, given: bytes = b"") -> tuple[int, str]:
    done = subprocess.run(command, input=given, capture_output=True, check=False, timeout=60)
    return done.returncode, (done.stdout + done.stderr).decode()


CHECKS = [
    pytest.param(["check", "rules", str(RULES)], id="the alerts"),
    pytest.param(["test", "rules", str(RULES_TEST)], id="when the alerts fire"),
    pytest.param(
        ["check", "config", str(CONFIG / "prometheus" / "prometheus.yml")],
        id="the settings of Prometheus",
    ),
]


@pytest.mark.requirement("OPS-04")
@pytest.mark.parametrize("arguments", CHECKS)
def test_promtool_accepts(promtool: str, arguments: list[str]) -> None:
    status, told = run(promtool, *arguments)
    assert status == 0, told
    assert "SUCCESS" in told


@pytest.mark.requirement("OPS-04", "OPS-05")
@pytest.mark.parametrize("path", ["/metrics", "/metrics/detailed"])
async def test_promtool_finds_nothing_wrong_with_a_page(promtool: str, path: str) -> None:
    broker = Broker()
    broker.fill("orders", 3)
    async with served(broker.store, broker=broker) as url:
        answer = await ask(url + path)
    assert run(promtool, "check", "metrics", given=answer.body) == (0, "")
