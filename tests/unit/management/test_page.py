"""The page of a long list that a request selects."""

import pytest

from broker.amqp.types import UInt
from broker.management.page import COUNT_MAX, OFFSET_MAX, read_page
from broker.management.request import Refused, Request

KNOWN = ["name", "size"]
NAMES = ["b.2", "a.1", "b.1", "c", "b.3"]


def asked(arguments: dict[str, object] | None = None, **properties: object) -> Request:
    return Request(operation="QUERY", type="x", properties=properties, arguments=arguments or {})


PAGES = [
    pytest.param(asked(), ["a.1", "b.1", "b.2", "b.3", "c"], id="all of a short list, by name"),
    pytest.param(asked(count=2), ["a.1", "b.1"], id="the first"),
    pytest.param(asked(offset=UInt(2), count=2), ["b.2", "b.3"], id="the next"),
    pytest.param(asked(offset=5), [], id="behind the end"),
    pytest.param(asked({"filter": "b.*"}), ["b.1", "b.2", "b.3"], id="those of a pattern"),
    pytest.param(asked({"filter": "b.*"}, offset=1, count=1), ["b.2"], id="a page of those"),
    pytest.param(asked({"filter": "[ac]*"}), ["a.1", "c"], id="either letter"),
    pytest.param(asked({"filter": "B.*"}), [], id="letters as they are"),
]


@pytest.mark.parametrize(("request_", "expected"), PAGES)
def test_the_names_on_a_page(request_: Request, expected: list[str]) -> None:
    assert read_page(request_, KNOWN).choose(NAMES) == expected


def test_what_parts_equal_names_is_not_for_the_pattern() -> None:
    page = read_page(asked({"filter": "a"}), KNOWN)
    assert page.choose(["a\x002", "a\x001", "b\x003"]) == ["a\x001", "a\x002"]


def test_a_row_for_each_record() -> None:
    page = read_page(asked({"attributeNames": ["size"]}), KNOWN)
    response = page.response([{"name": "a", "size": 1}, {"name": "b", "size": 2}])
    assert response.body == {"attributeNames": ["size"], "results": [[1], [2]]}
    assert response.properties == {"count": 2}


def test_all_attributes_where_none_are_named() -> None:
    response = read_page(asked(), KNOWN).response([{"name": "a", "size": 1}])
    assert response.body == {"attributeNames": KNOWN, "results": [["a", 1]]}


WRONG = [
    pytest.param(asked(count=0), "count must be a number from 1", id="nothing asked for"),
    pytest.param(asked(count=COUNT_MAX + 1), "count", id="a page that is too large"),
    pytest.param(asked(offset=-1), "offset", id="before the start"),
    pytest.param(asked(offset=OFFSET_MAX + 1), "offset", id="too far"),
    pytest.param(asked(offset="1"), "offset", id="a string for a number"),
    pytest.param(asked({"filter": 1}), "filter must be a string", id="no pattern"),
    pytest.param(asked({"attributeNames": ["colour"]}), "no attribute colour", id="attribute"),
    pytest.param(asked({"attributeNames": ["name"] * 101}), "at most 100", id="many attributes"),
    pytest.param(asked({"sort": "x"}), "no argument sort", id="an argument nobody knows"),
]


@pytest.mark.attack("Z9")
@pytest.mark.parametrize(("request_", "told"), WRONG)
def test_a_page_that_cannot_be_is_a_bad_request(request_: Request, told: str) -> None:
    with pytest.raises(Refused, match=told) as refused:
        read_page(request_, KNOWN)
    assert refused.value.status == 400
