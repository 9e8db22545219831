"""Entry point for requests to the HTTP API: their bodies, and the parameters of their URLs.

The first byte chooses the endpoint. What follows is a body if the endpoint takes one, else a query.
It is refused with a failure that has a status and a text, or is read; what was read from a body is
the same when it is written and read again.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

from pydantic import BaseModel

from broker.http.api.bodies import ERRORS_MAX, parsed
from broker.http.api.endpoint import Endpoint
from broker.http.api.parameters import read_parameters
from broker.http.api.problems import Failure
from broker.http.api.table import endpoints
from broker.management.request import Refused

ENDPOINTS: Final = endpoints()

BODIES: Final = (
    b'{"password": "p", "roles": ["a", "\\u00e4"], "scram": true}',
    b'{"enabled": false}',
    b'{"action": "move", "from": {"queue": "q"}, "ids": ["1", "2"], "to": "t", "to_type": "queue"}',
    b'{"action": "delete", "from": {"subscription": "s"}, "selector": "a = 1", "dry_run": true}',
    b'{"verb": "send", "resource": "queue:q", "user": "ann", "roles": ["r"], "from": "10.0.0.1"}',
    b'{"file": "/backup/store.db"}',
    b"{}",
)
QUERIES: Final = (
    b"limit=10&sort=-messages,name&q=or*&fields=name,messages&count=true&temporary=false",
    b"queue=q&state=held&selector=a+%3D+1&cursor=7",
    b"since=2026-11-26T00:00:00Z&action=user.*&user=ann",
    b"dry_run=true&limit=9223372036854775807",
)


def seeds() -> list[bytes]:
    """Return each body for each endpoint with one, and each query for one without."""
    return [
        bytes([number]) + text
        for number, endpoint in enumerate(ENDPOINTS)
        if endpoint.body is not None or endpoint.parameters
        for text in (BODIES if endpoint.body is not None else QUERIES)
    ]


def extremes() -> list[bytes]:
    """Return bodies that are slow to read unless limits hold."""
    (action,) = (
        bytes([number])
        for number, endpoint in enumerate(ENDPOINTS)
        if endpoint.path == "/message-actions"
    )
    return [
        action + text
        for text in (
            b"[" * 60_000,
            b'{"from":' * 8_000,
            b'{"ids": [' + b'"1",' * 16_000 + b'"1"]}',
            b'{"ids": [' + b"{}," * 20_000 + b"{}]}",
            b'{"limit": ' + b"9" * 60_000 + b"}",
            b"{" + b",".join(b'"%d": 1' % number for number in range(6000)) + b"}",
        )
    ]


def api_request(data: bytes) -> None:
    """Read a request's body or parameters, and check what came of it."""
    if not data:
        return
    endpoint = ENDPOINTS[data[0] % len(ENDPOINTS)]
    found = _read(endpoint, data[1:])
    if isinstance(found, Refused):
        assert 400 <= found.status < 500
        assert str(found)
        if isinstance(found, Failure):
            assert len(found.errors) <= ERRORS_MAX
    elif found is not None:
        assert parsed(_written(found), type(found)) == found


def _read(endpoint: Endpoint, data: bytes) -> BaseModel | Refused | None:
    """Return the body or why the request is refused; None for parameters that are read."""
    try:
        if endpoint.body is not None:
            return parsed(data, endpoint.body)
        pairs = parse_qsl(data.decode(errors="replace"), keep_blank_values=True)
        read_parameters(pairs, endpoint.parameters)
    except Refused as refused:
        return refused
    return None


def _written(body: BaseModel) -> bytes:
    return body.model_dump_json(by_alias=True, exclude_unset=True).encode()
