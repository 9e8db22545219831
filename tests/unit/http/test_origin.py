"""Requests that browsers send for pages of other sites are recognized."""

import pytest

from broker.http.origin import foreign_page

HOST = "localhost:8161"


@pytest.mark.attack("S7")
@pytest.mark.parametrize(
    ("headers", "foreign"),
    [
        pytest.param({}, "", id="a program"),
        pytest.param({"sec-fetch-site": "same-origin"}, "", id="a page of the broker"),
        pytest.param({"sec-fetch-site": "cross-site"}, "site", id="another site"),
        pytest.param({"origin": f"http://{HOST}"}, "", id="the own origin"),
        pytest.param({"origin": "http://evil.example"}, "origin", id="another origin"),
        pytest.param({"origin": "http://[x"}, "origin", id="nonsense"),
        pytest.param({"origin": "null", "host": ""}, "origin", id="no origin and no host"),
    ],
)
def test_the_page_behind_a_request(headers: dict[str, str], foreign: str) -> None:
    assert foreign_page({"host": HOST, **headers}) == foreign
