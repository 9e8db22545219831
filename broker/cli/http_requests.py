"""Requests to management over the HTTP API, with Python's own client: they need no proton."""

from __future__ import annotations

import json
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import TracebackType
from typing import Final, Self
from urllib.parse import unquote

from broker.cli.broker_url import HTTP_SCHEMES, split_url, without_password
from broker.cli.client_tls import ClientTls, handshake_failure
from broker.cli.ending import EXIT_FORBIDDEN, EXIT_UNREACHABLE, EXIT_USAGE, ClientError
from broker.cli.requests import FAILURES_FROM, NOT_FOUND, RefusalError, Requests

PATH: Final = "/api/v1/management"

PORT: Final = 8161

UNAUTHORIZED: Final = 401

BINARY: Final = "base64"
"""The only name of an object that stands for binary data."""


class HttpRequests(Requests):
    """The client of a broker's management on one connection of HTTP.

    Raise ClientError where the broker cannot be reached or does not answer as a broker.
    """

    def __init__(
        self, url: str, timeout_s: float, *, tls: ClientTls | None, token: str | None
    ) -> None:
        parts = split_url(url, HTTP_SCHEMES)
        self._place: Final = without_password(url)
        self._host: Final = parts.hostname or ""
        self._tls: Final = tls or ClientTls()
        port = parts.port or PORT
        self._connection: Final = (
            HTTPSConnection(self._host, port, timeout=timeout_s, context=self._tls.context())
            if parts.scheme == "https"
            else HTTPConnection(self._host, port, timeout=timeout_s)
        )
        if parts.scheme == "http" and (token or parts.username):
            self._demand_loopback()
        self._headers: Final = {"content-type": "application/json"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        elif parts.username:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["authorization"] = f"Basic {b64encode(login.encode()).decode()}"

    def _demand_loopback(self) -> None:
        """Raise ClientError if others could read what is sent without TLS."""
        from broker.security.authenticate import is_loopback

        if not is_loopback(self._host):
            text = f"{self._place}: http:// would send the login readable: use https://"
            raise ClientError(text, EXIT_USAGE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def send(self, asked: Mapping[str, object], arguments: Mapping[str, object]) -> object:
        own = ("operation", "type", "name", "identity")
        request = {
            **{name: asked[name] for name in own if name in asked},
            "properties": {name: each for name, each in asked.items() if name not in own},
            "arguments": arguments,
        }
        status, answer = self._exchanged(json.dumps(encoded(request)).encode())
        if status >= FAILURES_FROM:
            text = str(answer.get("detail", f"status {status}"))
            if status == UNAUTHORIZED:
                raise ClientError(f"{self._place}: {text}", EXIT_FORBIDDEN)
            raise RefusalError(status, text)
        return decoded(answer.get("body"))

    def _exchanged(self, request: bytes) -> tuple[int, Mapping[str, object]]:
        """Return the status and the content of the response to a request."""
        try:
            self._connection.request("POST", PATH, request, self._headers)
            response = self._connection.getresponse()
            content = response.read()
        except ssl.SSLError as error:
            text = handshake_failure(error, self._host, self._tls)
            raise ClientError(f"{self._place}: {text}", EXIT_UNREACHABLE) from None
        except TimeoutError:
            raise ClientError(f"{self._place}: no answer in time", EXIT_UNREACHABLE) from None
        except (OSError, HTTPException) as error:
            text = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ClientError(f"{self._place}: {text}", EXIT_UNREACHABLE) from None
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        is_problem = response.status >= FAILURES_FROM
        if not isinstance(answer, dict) or ("detail" if is_problem else "body") not in answer:
            reason = "no API of a broker is there"
            if response.status == NOT_FOUND:
                reason += ": its setting http.api may be false"
            raise ClientError(f"{self._place}: {reason}", EXIT_UNREACHABLE)
        return response.status, answer

    def build(self) -> str:
        try:
            return str(self.ask("READ", "broker", "broker")["build"])
        except RefusalError:
            return ""  # the user may not view metrics

    def pause(self, seconds: float) -> None:
        self._connection.close()  # the next request opens it again
        time.sleep(seconds)

    def connection_has_ended(self) -> bool:
        try:
            self.ask("READ", "broker", "broker")
        except RefusalError:
            return False
        except ClientError:
            return True
        return False


def encoded(value: object) -> object:
    """Return a value of a request with types of JSON alone."""
    if isinstance(value, bytes):
        return {BINARY: b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {str(name): encoded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(each) for each in value]
    return value


def decoded(value: object) -> object:
    """Return a value of a response with binary data as bytes."""
    if isinstance(value, dict):
        if list(value) == [BINARY] and isinstance(value[BINARY], str):
            return b64decode(value[BINARY])
        return {name: decoded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [decoded(each) for each in value]
    return value
