"""Headers, settings and properties of a message over HTTP: each that is known, each refused."""

from __future__ import annotations

import pytest

from broker.amqp.types import Byte, Float, Int, Short
from broker.http.jms_fields import KNOWN, NAMES, fields_of
from broker.http.jms_problems import JmsProblem
from broker.http.limits import JMS_FIELDS_BYTES_MAX, JMS_PROPERTIES_MAX
from broker.jms.soap import REFUSED

pytestmark = pytest.mark.requirement("MAP-09")


def raw(*headers: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers as they arrive: names in lower case."""
    return [(name.lower().encode(), value.encode()) for name, value in headers]


def slug_of(*headers: tuple[str, str], query: tuple[tuple[str, str], ...] = ()) -> tuple[str, str]:
    """Return the kind and the text of the problem of these fields."""
    with pytest.raises(JmsProblem) as refused:
        fields_of(raw(*headers), query)
    return refused.value.slug, str(refused.value)


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_a_header_or_an_argument(name: str) -> None:
    assert fields_of(raw((name, "x")), []).given == {name: "x"}
    assert fields_of([], [(name, "x")]).given == {name: "x"}
    assert fields_of(raw((name, "x")), [(name, "x")]).given == {name: "x"}
    slug, text = slug_of((name, "x"), query=((name, "y"),))
    assert slug == "conflicting-values"
    assert name in text


def test_a_header_without_underscore_is_the_same() -> None:
    assert fields_of(raw(("SOAPJMS-requestURI", "x")), []).given == {"SOAPJMS_requestURI": "x"}
    assert KNOWN["soapjms-isfault"] == "SOAPJMS_isFault"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_each_header_of_the_provider_is_refused_by_name(name: str) -> None:
    for found in (slug_of((name, "x")), slug_of(query=((name, "x"),))):
        assert found == ("header-not-allowed", f"{name} is not for the sender to give")
    assert slug_of(("JMS-Property", f"{name}=x"))[0] == "header-not-allowed"


@pytest.mark.parametrize(
    "name",
    ["JMSXDeliveryCount", "JMSXUserID", "JMS_AMQP_TTL", "JMSnew", "jms.unknown", "SOAPJMS_x"],
)
def test_any_other_name_of_jms_is_refused(name: str) -> None:
    assert slug_of((name, "x")) == (
        "header-not-allowed",
        f"{name.lower()} is not for the sender to give",
    )


def test_an_argument_that_is_not_of_jms_is_refused() -> None:
    assert slug_of(query=(("color", "x"),)) == ("bad-request", "no argument color")


PROPERTIES = [
    pytest.param("n=x", "x", id="a string"),
    pytest.param("n=", "", id="an empty string"),
    pytest.param("n=a=b;c", "a=b;c", id="a string with separators"),
    pytest.param("n=5;type=int", Int(5), id="int"),
    pytest.param("n=-5;type=short", Short(-5), id="short"),
    pytest.param("n=5;type=byte", Byte(5), id="byte"),
    pytest.param("n=9223372036854775807;type=long", 2**63 - 1, id="long"),
    pytest.param("n=1.5;type=double", 1.5, id="double"),
    pytest.param("n=1.5;type=float", Float(1.5), id="float"),
    pytest.param("n=true;type=boolean", True, id="boolean"),
    pytest.param("n=x;type=int;type=string", "x;type=int", id="a string like a type"),
    pytest.param("n=%C3%A9%0A", "é\n", id="percent-encoded"),
]


@pytest.mark.parametrize(("text", "value"), PROPERTIES)
def test_a_property_has_a_type(text: str, value: object) -> None:
    found = fields_of(raw(("JMS-Property", text)), []).properties["n"]
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        pytest.param("n", "invalid-property", id="no value"),
        pytest.param("=x", "invalid-property", id="no name"),
        pytest.param("n=x;type=int", "invalid-property", id="no int"),
        pytest.param("n=1_0;type=int", "invalid-property", id="an int of Python alone"),
        pytest.param("n=128;type=byte", "invalid-property", id="too much for a byte"),
        pytest.param("n=9223372036854775808;type=long", "invalid-property", id="and a long"),
        pytest.param("n=yes;type=boolean", "invalid-property", id="no boolean"),
        pytest.param("n=1;type=decimal", "invalid-property", id="no such type"),
        pytest.param("JMSXUserID=eve", "header-not-allowed", id="another's name"),
        pytest.param("jms_x=1", "header-not-allowed", id="a name of JMS in lower case"),
        pytest.param("n=%FF", "bad-request", id="no UTF-8"),
    ],
)
def test_a_property_that_is_not_allowed(text: str, slug: str) -> None:
    assert slug_of(("JMS-Property", text))[0] == slug


def test_properties_are_told_apart_by_case_and_not_given_twice() -> None:
    found = fields_of(raw(("JMS-Property", "n=1"), ("JMS-Property", "N=2")), [])
    assert found.properties == {"n": "1", "N": "2"}
    assert slug_of(("JMS-Property", "n=1"), ("JMS-Property", "n=2"))[0] == "conflicting-values"


def test_a_message_has_only_so_many_properties() -> None:
    many = [("JMS-Property", f"n{number}=x") for number in range(JMS_PROPERTIES_MAX)]
    assert len(fields_of(raw(*many), []).properties) == JMS_PROPERTIES_MAX
    assert slug_of(*many, ("JMS-Property", "more=x")) == (
        "too-many-fields",
        f"a message has at most {JMS_PROPERTIES_MAX} properties",
    )


def test_the_fields_of_a_message_have_only_so_many_bytes() -> None:
    value = "x" * (JMS_FIELDS_BYTES_MAX - len("JMSType"))
    assert fields_of(raw(("JMSType", value)), []).given
    assert slug_of(("JMSType", value + "x"))[0] == "too-many-fields"
