"""The pages of reference are as the code makes them."""

import re

import pytest

from broker.address_settings import NAMES
from broker.settings import Settings
from config import (
    command_line_page,
    configuration_page,
    core_rules_page,
    jms_rules_page,
    log_page,
    metrics_page,
    settings_texts,
)

AGAIN = "run `make references`"


def test_the_page_of_settings_is_as_the_settings_file_makes_it() -> None:
    made = configuration_page.page(settings_texts.FILE.read_text())
    assert configuration_page.PAGE.read_text() == made, AGAIN


def test_the_page_of_settings_has_every_setting() -> None:
    page = configuration_page.PAGE.read_text()
    tables = {"http", "log", "audit", "drain", "tracing", "listener", "tls", "oauth", "ha"}
    tables |= {"bridge", "shard", "address", "queue", "topic"}
    for name in set(Settings.model_fields) - set(NAMES) - tables:
        assert f"| `{name}`<br>" in page
    assert "| `log.level`<br>`JMS_BROKER_LOG_LEVEL` |" in page


def test_settings_without_a_text_of_their_own_share_that_above() -> None:
    text = "# ---- limits ---\n\n# Both.\n#one = 1\n#two = 2\n\n# ---- addresses that differ -\n"
    ((title, settings),) = configuration_page.sections(text)
    assert title == "limits"
    assert [(each.name, each.default, each.text) for each in settings] == [
        ("one", "1", "Both."),
        ("two", "2", ""),
    ]


def test_the_page_of_commands_is_as_the_commands_make_it() -> None:
    assert command_line_page.PAGE.read_text() == command_line_page.page(), AGAIN


def test_the_page_of_commands_has_no_long_lines_and_every_group() -> None:
    page = command_line_page.PAGE.read_text()
    assert max(map(len, page.splitlines())) <= command_line_page.WIDTH
    for command in ("serve", "node list", "message retry", "pipeline archive"):
        assert re.search(rf"^## `jms-broker {command}`|^### `jms-broker {command}`", page, re.M)


def test_the_page_of_metrics_has_the_tables_that_the_code_makes() -> None:
    page = metrics_page.PAGE.read_text()
    assert metrics_page.page_text(page) == page, AGAIN


@pytest.mark.requirement("OPS-10")
def test_the_lines_of_the_log_are_those_of_the_code() -> None:
    page = log_page.PAGE.read_text()
    assert log_page.page_text(page) == page, AGAIN


def test_the_page_of_jms_rules_has_those_of_the_suite() -> None:
    page = jms_rules_page.PAGE.read_text()
    assert jms_rules_page.page_text(page) == page, AGAIN


def test_the_page_of_core_rules_has_the_tables_of_the_harness() -> None:
    page = core_rules_page.PAGE.read_text()
    assert core_rules_page.page_text(page) == page, AGAIN
