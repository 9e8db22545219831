"""`jms-broker explain`: selectors without a broker, and attaches without naming that."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("proton")

from broker import Broker
from broker.cli.application import application

pytestmark = pytest.mark.requirement("OPS-15")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(application, ["explain", *arguments])


SELECTORS = [
    pytest.param("price > 3", ["price=4"], True, id="a number"),
    pytest.param("price > 3", ["price=2.5"], False, id="a smaller one"),
    pytest.param("price > 3", ["Price=4"], False, id="another name"),
    pytest.param("price > 3", ["price='4'"], False, id="a text is no number"),
    pytest.param("colour = 'red'", ["colour=red"], True, id="a text"),
    pytest.param("sold", ["sold=true"], True, id="a boolean"),
    pytest.param("colour IS NULL", [], True, id="no property"),
    pytest.param("JMSPriority = 7", ["JMSPriority=7"], True, id="a priority"),
    pytest.param("JMSType LIKE 'or%'", ["JMSType=order"], True, id="a type"),
    pytest.param(
        "JMSDeliveryMode = 'PERSISTENT'", ["JMSDeliveryMode=PERSISTENT"], True, id="a mode"
    ),
    pytest.param("a = 'x=y'", ["a=x=y"], True, id="an equals sign"),
]


@pytest.mark.parametrize(("selector", "properties", "is_selected"), SELECTORS)
def test_a_selector(selector: str, properties: list[str], is_selected: bool) -> None:
    options = [option for each in properties for option in ("--property", each)]
    done = run("selector", selector, *options, "--json")
    assert json.loads(done.stdout)["selected"] is is_selected
    assert done.exit_code == (0 if is_selected else 1)


ERRORS = [
    pytest.param(["price >"], id="a selector"),
    pytest.param(["a = 1", "-p", "a"], id="no value"),
    pytest.param(["a = 1", "-p", "JMSPriority=high"], id="a header"),
    pytest.param(["a = 1", "-p", "JMSDeliveryMode=2"], id="a mode"),
]


@pytest.mark.parametrize("arguments", ERRORS)
def test_wrong_usage(arguments: list[str]) -> None:
    done = run("selector", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("jms-broker: ")


@pytest.mark.parametrize("arguments", [["news"], ["attach", "news"], ["--kind", "topic", "news"]])
def test_an_attach_needs_no_name(arguments: list[str]) -> None:
    with Broker() as broker:
        done = run(*arguments, "--url", broker.url)
        assert done.exit_code == 0, done.stderr
        assert "news, which is created" in done.stdout


def test_help_is_that_of_the_group() -> None:
    assert "selector" in run("--help").stdout


def test_a_route() -> None:
    with Broker() as broker:
        CliRunner().invoke(application, ["node", "create", "orders", "--url", broker.url])
        done = run("route", "orders", "-p", "price=4", "--json", "--url", broker.url)
        assert done.exit_code == 0, done.stderr
        told = json.loads(done.stdout)
        assert (told["kind"], told["node"], told["is_there"]) == ("queue", "orders", True)
        assert broker.messages("orders") == []
