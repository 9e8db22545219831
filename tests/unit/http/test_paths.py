"""Paths of URLs: a name may have slashes and line ends, and the part it was sent to responds."""

from __future__ import annotations

import pytest
from starlette.routing import Match, Mount, Route

from broker.http.paths import accept_line_ends_in_paths


async def nothing(request: object) -> None:
    raise AssertionError(request)


@pytest.mark.parametrize("name", ["a", "a/b", "a//b/", "", "a\nb", "a\n", "\r\n"])
def test_a_name_is_whole(name: str) -> None:
    accept_line_ends_in_paths()
    scope = {"type": "http", "method": "GET", "path": f"/queues/{name}", "headers": []}
    match, child = Route("/queues/{name:path}", nothing).matches(scope)
    assert (match, child["path_params"]) == (Match.FULL, {"name": name})
    assert Mount("/queues", routes=[]).matches(scope)[0] is Match.FULL
