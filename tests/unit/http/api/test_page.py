"""The page of the API names all endpoints, and needs nothing of another host."""

import re

import pytest

from broker.http.api.page import PAGE_HEADERS, page_of
from broker.http.api.table import endpoints

pytestmark = pytest.mark.requirement("OPS-01")


def test_the_page_names_every_endpoint_and_parameter() -> None:
    page = page_of(endpoints())
    for endpoint in endpoints():
        assert f"<code>{endpoint.method} {endpoint.path}</code>" in page
        for parameter in endpoint.parameters:
            assert f"<td>{parameter.name}</td>" in page


@pytest.mark.attack("S6")
def test_the_page_has_no_script_and_no_foreign_host() -> None:
    page = page_of(endpoints())
    assert "<script" not in page
    assert re.findall(r"(?:src|href)=\"([^\"]*)\"", page) == ["/openapi.json"]
    assert "unsafe" not in PAGE_HEADERS["content-security-policy"]
    assert "script-src" not in PAGE_HEADERS["content-security-policy"]
