"""Fields of forms. Their limits have tests over a socket, in `test_application.py`."""

from __future__ import annotations

import pytest

from broker.http.console.forms import Form

pytestmark = pytest.mark.requirement("OPS-06")


def test_fields() -> None:
    form = Form([("a", " 1 "), ("a", "2"), ("empty", ""), ("set", "true")])
    assert (form.text("a"), form.exact("a"), form.texts("a")) == ("1", " 1 ", [" 1 ", "2"])
    assert (form.text("missing"), form.exact("missing"), form.texts("missing")) == ("", "", [])
    assert (form.flag("set"), form.flag("empty"), form.flag("missing")) == (True, False, False)
