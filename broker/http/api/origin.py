"""Requests that a page of another site makes a browser send: they change nothing.

A browser on the broker's machine, or one that knows a password, would be admitted.
"""

from __future__ import annotations

from collections.abc import Mapping

from broker.http.api.problems import Failure
from broker.http.origin import foreign_page
from broker.management.request import FORBIDDEN


def check_origin(headers: Mapping[str, str]) -> None:
    """Raise Failure if another site makes this request, by what a browser says of it."""
    foreign = foreign_page(headers)
    if foreign:
        raise Failure(FORBIDDEN, f"a page of another {foreign} made this request")
