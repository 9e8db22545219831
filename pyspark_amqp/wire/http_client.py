"""Reading from the broker by HTTP: Arrow streams, and a few facts as JSON."""

from __future__ import annotations

import http.client
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Final, cast
from urllib.parse import SplitResult, urlencode, urlsplit

import pyarrow as pa

from pyspark_amqp.errors import TransientError, error_of
from pyspark_amqp.options import Options
from pyspark_amqp.wire.credentials import authorization, trusting_context
from pyspark_amqp.wire.failures import REACHED, class_of_dial
from pyspark_amqp.wire.patience import Patience

READ_AHEAD: Final = 1 << 20

OK: Final = 200
ERROR_BYTES_MAX: Final = 65_536
"""Maximum bytes of an error's text that are read."""


def batches(
    options: Options, path: str, arguments: Mapping[str, object]
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches that the broker has at `path`.

    Raise TransientError at an early end, BrokerError if the broker refuses the request.
    """
    with _answer(options, path, arguments) as response:
        try:
            # the broker ends a failed stream without its last chunk: `readinto` then raises
            stream = cast("io.RawIOBase", response)
            with pa.ipc.open_stream(io.BufferedReader(stream, READ_AHEAD)) as reader:
                yield from reader
            if response.read(1):
                raise TransientError(f"{path}: there is something behind the end of the stream")
        except (http.client.HTTPException, OSError, pa.ArrowException) as error:
            raise TransientError(f"{path}: broken off: {error!r}") from error


def fact(options: Options, path: str) -> Mapping[str, object]:
    """Return the JSON object at `path`; ask again for the time of the option amqp.timeout."""
    patience = Patience(options)
    while True:
        try:
            return _fact(options, path)
        except TransientError as error:
            patience.pause(error)


def _fact(options: Options, path: str) -> Mapping[str, object]:
    with _answer(options, path, {}) as response:
        try:
            told: Mapping[str, object] = json.loads(response.read())
        except (http.client.HTTPException, OSError) as error:
            raise TransientError(f"{path}: broken off: {error!r}") from error
        return told


@contextmanager
def _answer(
    options: Options, path: str, arguments: Mapping[str, object]
) -> Iterator[http.client.HTTPResponse]:
    parts = urlsplit(options.management_url or "")
    headers = authorization(options, parts)
    connection = _connection(options, parts)
    given = {name: value for name, value in arguments.items() if value is not None}
    target = f"{path}?{urlencode(given)}" if given else path
    with closing(connection):
        try:
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
        except (http.client.HTTPException, OSError) as error:
            where = f"{connection.host}:{connection.port}"
            found = class_of_dial(error, connection.host)
            raise found(f"{parts.scheme} {where}: {error!r}") from error
        REACHED.add(connection.host)
        if response.status != OK:
            raise error_of(response.status, f"{path}: {_reason(response)}")
        yield response


def _connection(options: Options, parts: SplitResult) -> http.client.HTTPConnection:
    assert parts.hostname is not None
    timeout_s = options.number("amqp.timeout") / 1000
    if parts.scheme == "https":
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout_s, context=trusting_context(options)
        )
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)


def _reason(response: http.client.HTTPResponse) -> str:
    text = response.read(ERROR_BYTES_MAX).decode("utf-8", "replace")
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if isinstance(told, dict) and "error" in told:
        return str(told["error"])
    return f"{response.status} {response.reason}"
