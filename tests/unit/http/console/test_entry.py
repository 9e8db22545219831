"""Whether a browser says that a page of this broker sends a form."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from broker.http.console.entry import check_page
from broker.management.request import Refused

pytestmark = pytest.mark.requirement("OPS-07")

HOST = "broker.example:8161"


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        pytest.param({"origin": f"http://{HOST}"}, True, id="the origin of the host"),
        pytest.param({"sec-fetch-site": "same-origin"}, True, id="the same origin, says a browser"),
        pytest.param({}, False, id="nothing: every browser says something"),
        pytest.param({"sec-fetch-site": "none"}, False, id="a person, who does not type forms"),
        pytest.param({"origin": "null"}, False, id="an origin without a name"),
        pytest.param({"origin": "http://evil.example"}, False, id="another origin"),
        pytest.param({"origin": "http://broker.example:80"}, False, id="another port"),
        pytest.param(
            {"origin": f"http://{HOST}", "sec-fetch-site": "cross-site"}, False, id="they disagree"
        ),
    ],
)
def test_the_sender_of_a_form(headers: dict[str, str], is_own: bool) -> None:
    pairs = [(key.encode(), value.encode()) for key, value in {"host": HOST, **headers}.items()]
    request = Request({"type": "http", "method": "POST", "headers": pairs})
    try:
        check_page(request)
    except Refused as refused:
        found = refused.status
    else:
        found = 0
    assert found == (0 if is_own else 403)
