"""Reading from the broker by HTTP: Arrow streams, and a few facts as JSON."""

from __future__ import annotations

import base64
import http.client
import io
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Final, cast
from urllib.parse import unquote, urlencode, urlsplit

import pyarrow as pa

from pyspark_amqp.errors import BrokerError, UnreachableError, error_of
from pyspark_amqp.options import Options

READ_AHEAD: Final = 1 << 20

OK: Final = 200
ERROR_BYTES_MAX: Final = 65_536
"""Maximum bytes of an error's text that are read."""


def batches(
    options: Options, path: str, arguments: Mapping[str, object]
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches that the broker has at `path`; raise BrokerError at an early end."""
    with _answer(options, path, arguments) as response:
        try:
            # the broker ends a failed stream without its last chunk: `readinto` then raises
            stream = cast("io.RawIOBase", response)
            with pa.ipc.open_stream(io.BufferedReader(stream, READ_AHEAD)) as reader:
                yield from reader
            if response.read(1):
                raise BrokerError(f"{path}: there is something behind the end of the stream")
        except (http.client.HTTPException, OSError, pa.ArrowException) as error:
            raise BrokerError(f"{path}: broken off: {error!r}") from error


def fact(options: Options, path: str) -> Mapping[str, object]:
    """Return the JSON object at `path`."""
    with _answer(options, path, {}) as response:
        told: Mapping[str, object] = json.loads(response.read())
        return told


@contextmanager
def _answer(
    options: Options, path: str, arguments: Mapping[str, object]
) -> Iterator[http.client.HTTPResponse]:
    connection = _connection(options)
    given = {name: value for name, value in arguments.items() if value is not None}
    target = f"{path}?{urlencode(given)}" if given else path
    with closing(connection):
        try:
            connection.request("GET", target, headers=_headers(options))
            response = connection.getresponse()
        except (http.client.HTTPException, OSError) as error:
            where = f"{connection.host}:{connection.port}"
            raise UnreachableError(f"http {where}: {error!r}") from error
        if response.status != OK:
            raise error_of(response.status, f"{path}: {_reason(response)}")
        yield response


def _connection(options: Options) -> http.client.HTTPConnection:
    url = options.management_url
    assert url is not None
    parts = urlsplit(url)
    assert parts.hostname is not None
    timeout_s = options.number("amqp.timeout") / 1000
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=options.text("tls.caFile"))
        certificate, key = options.text("tls.certFile"), options.text("tls.keyFile")
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout_s, context=context
        )
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)


def _headers(options: Options) -> dict[str, str]:
    parts = urlsplit(options.management_url or "")
    user, password = options.text("username"), options.text("password")
    if user is None and parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
    if user is None:
        return {}
    login = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
    return {"Authorization": f"Basic {login}"}


def _reason(response: http.client.HTTPResponse) -> str:
    text = response.read(ERROR_BYTES_MAX).decode("utf-8", "replace")
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if isinstance(told, dict) and "error" in told:
        return str(told["error"])
    return f"{response.status} {response.reason}"
