"""Values in requests over HTTP; `tests/interop/test_command_line_http.py` has the commands."""

from __future__ import annotations

import pytest

from broker.cli.ending import EXIT_USAGE, ClientError
from broker.cli.http_requests import HttpRequests, decoded, encoded

VALUES = [
    pytest.param({"a": [1, "x", None, True]}, {"a": [1, "x", None, True]}, id="values of JSON"),
    pytest.param(b"\x00", {"base64": "AA=="}, id="binary"),
    pytest.param({"a": (b"",)}, {"a": [{"base64": ""}]}, id="binary in a list"),
]


@pytest.mark.parametrize(("value", "in_json"), VALUES)
def test_a_value_of_a_request(value: object, in_json: object) -> None:
    assert encoded(value) == in_json


def test_a_value_of_a_response() -> None:
    assert decoded([{"a": {"base64": "AA=="}}, 1]) == [{"a": b"\x00"}, 1]
    assert decoded({"base64": 1}) == {"base64": 1}
    assert decoded({"base64": "AA==", "more": 1}) == {"base64": "AA==", "more": 1}


@pytest.mark.parametrize(
    ("url", "token"),
    [
        pytest.param("http://a:b@h.example", None, id="a password that others could read"),
        pytest.param("http://h.example", "t", id="a token that others could read"),
    ],
)
def test_a_login_is_not_sent_in_clear(url: str, token: str | None) -> None:
    with pytest.raises(ClientError, match="would send the login readable") as refused:
        HttpRequests(url, 1.0, tls=None, token=token)
    assert refused.value.exit_status == EXIT_USAGE


@pytest.mark.parametrize(
    "url",
    ["http://h.example", "http://a:b@localhost", "http://a:b@127.0.0.1", "https://a:b@h.example"],
)
def test_other_logins_are_sent(url: str) -> None:
    with HttpRequests(url, 1.0, tls=None, token=None) as requests:
        assert isinstance(requests, HttpRequests)
