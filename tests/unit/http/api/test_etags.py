"""Entity tags depend on the settings alone."""

import pytest

from broker.http.api.etags import etag_of

BODY = {"name": "q", "messages": 1, "limit": 5}


@pytest.mark.requirement("OPS-01")
@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        pytest.param({"messages": 2}, True, id="a count"),
        pytest.param({"limit": 6}, False, id="a setting"),
        pytest.param({"name": "r"}, False, id="the name"),
    ],
)
def test_a_tag_is_of_the_settings(change: dict[str, object], is_same: bool) -> None:
    settings = ("name", "limit")
    tag = etag_of(BODY, settings)
    assert (etag_of({**BODY, **change}, settings) == tag) == is_same
    assert tag.startswith('"')
