"""The page of reference names every path, argument, column, status and limit, and no others."""

import re
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from starlette.routing import Route

from broker.http import access, application, arrow_streams, events, limits, messages
from broker.http.mounts import routes_of
from broker.http_settings import HttpSettings
from broker.management import request
from storage.memory import MemoryStore
from tests.support.http import ask, served, server_of

PAGE: Final = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "http.md").read_text()
HTTP: Final = Path(application.__file__).parent

TYPES: Final = {
    "int64": pa.int64(),
    "timestamp, µs, UTC": pa.timestamp("us", "UTC"),
    "binary": pa.binary(),
}


def section(title: str) -> str:
    """Return the text below a heading of the page, up to the next heading."""
    return re.split(r"^##", PAGE.partition(f"# {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str, header: str) -> list[list[str]]:
    """Return the cells of the table whose first column is `header`."""
    table = text.partition(f"| {header} |")[2].partition("\n\n")[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]


def names_in(cells: list[str]) -> list[str]:
    """Return what is in code style in the first of `cells`."""
    return re.findall(r"`([^`]+)`", cells[0])


def paths() -> list[str]:
    """Return the paths of the table."""
    return [name for cells in rows(section("Paths"), "path") for name in names_in(cells)]


def test_the_page_has_the_routes() -> None:
    routes = routes_of(server_of(MemoryStore()).site)
    assert sorted(paths()) == sorted(each.path for each in routes if isinstance(each, Route))


async def test_every_path_takes_get_and_head() -> None:
    async with served(MemoryStore()) as url:
        for path in paths():
            for method, is_there in (("GET", True), ("HEAD", True), ("POST", False)):
                answer = await ask(url + path, method=method)
                assert (answer.status != 405) == is_there, (path, method)


@pytest.mark.parametrize("path", ["/arrow/browse", "/arrow/lease", "/arrow/events"])
async def test_the_page_has_the_arguments_of_each_path(path: str) -> None:
    async with served(MemoryStore()) as url:
        answer = await ask(f"{url}{path}?nonsense=1")
    allowed = re.search(r"known are ([\w, ]+)", answer.body.decode())
    assert allowed is not None
    named = [name for cells in rows(section(path), "argument") for name in names_in(cells)]
    assert sorted(named) == sorted(allowed[1].split(", "))


async def test_the_other_paths_have_no_arguments() -> None:
    async with served(MemoryStore()) as url:
        answer = await ask(f"{url}/events/bounds?nonsense=1")
    assert "known are none" in answer.body.decode()


def test_the_page_has_the_columns_of_messages() -> None:
    columns = [
        (names_in(cells)[0], TYPES[cells[1]]) for cells in rows(section("/arrow/browse"), "column")
    ]
    assert columns == [(field.name, field.type) for field in messages.SCHEMA]


def test_the_page_has_the_columns_of_the_event_log() -> None:
    text = " ".join(section("/arrow/events").split())
    sentences = re.search(r"The columns are (.*?)\. (.*?) are int64, all others are strings", text)
    assert sentences is not None
    columns, numbers = (re.findall(r"`(\w+)`", each) for each in sentences.groups())
    assert columns == events.SCHEMA.names
    assert numbers == [field.name for field in events.SCHEMA if field.type == pa.int64()]
    assert {field.type for field in events.SCHEMA} == {pa.int64(), pa.string()}


def test_the_page_has_the_media_type_of_streams() -> None:
    assert f"`{arrow_streams.MEDIA_TYPE}`" in PAGE


def test_the_page_has_every_status() -> None:
    sources = "".join(file.read_text() for file in HTTP.glob("*.py"))
    used = {
        value
        for name, value in vars(request).items()
        if isinstance(value, int) and 400 <= value < 600 and re.search(rf"\b{name}\b", sources)
    }
    # 405 is that of a route for another method, see above
    expected = used | {access.UNAUTHORIZED, 405}
    assert [int(cells[0]) for cells in rows(section("Errors"), "status")] == sorted(expected)


def test_the_page_has_every_limit() -> None:
    table = {cells[0]: cells[1:] for cells in rows(section("Limits"), "limit")}
    settings = HttpSettings()
    expected = {
        "streams that are sent at the same time": f"{settings.streams_max}",
        "request line and headers": f"{settings.head_bytes_max:,} bytes",
        "time for a client to send the head of a request": f"{limits.HEAD_MAX_MS // 1000} s",
        "silence between two requests, or without reading the response": (
            f"{settings.silence_max_ms // 1000} s"
        ),
        "open connections": (
            f"{limits.CONNECTIONS_MAX}; the last {limits.LOOPBACK_RESERVE}"
            " only for clients on the broker's machine"
        ),
        "open connections from one IPv4 address or one IPv6 /64 network": (
            f"{limits.CONNECTIONS_PER_SOURCE_MAX}"
        ),
        "streams that have the whole body of a large message in memory": (
            f"{messages.LARGE_AT_ONCE}"
        ),
    }
    assert {name: cells[0] for name, cells in table.items()} == expected
    named = re.findall(r"`http\.(\w+)`", section("Limits"))
    assert named == ["streams_max", "head_bytes_max", "silence_max_ms"]
