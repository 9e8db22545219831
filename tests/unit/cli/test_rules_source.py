"""The rules of a file as the commands of `jms-broker acl` see them."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from broker.cli.rules_source import RulesOfFile, as_table, canonical
from broker.security.question import AccessQuestion

FILE = """
[roles]
orders = ["svc"]
unused = ["svc"]
[[rule]]
id = "orders"
who = ["role:orders"]
can = ["produce"]
on = ["queue:orders.#"]
[[limit]]
who = ["role:orders"]
links = 3
"""


@pytest.fixture
def source(tmp_path: Path) -> RulesOfFile:
    file = tmp_path / "acl.toml"
    file.write_text(FILE)
    return RulesOfFile(file)


def test_problems_and_counts(source: RulesOfFile) -> None:
    verdict = source.check()
    assert verdict.counts == "rules 1, roles 2, limits 1"
    assert verdict.problems == [{"rule": "", "problem": "role unused: no rule names it"}]


def test_rules_come_before_limits(source: RulesOfFile) -> None:
    assert [each["id"] for each in source.records(built_in=False)] == ["orders", "limit 1"]
    assert len(source.records(built_in=True)) > 2


def test_an_explanation_as_a_table(source: RulesOfFile) -> None:
    record = source.explain(AccessQuestion(verb="send", user="x"), "queue:orders.a")
    near = str(as_table(record)["near_misses"])
    assert near.startswith("orders (who), built-in:admin-everything (who), ")
    assert record["limits"] == ""
    own = source.explain(AccessQuestion(verb="send", user="svc"), "queue:orders.a")
    assert own["limits"] == "links = 3"


def test_a_wrong_resource_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        canonical("orders", "send", place="here: ")
    assert ended.value.exit_code == 2
    assert "jms-broker: here: 'orders' is no resource" in capsys.readouterr().err
