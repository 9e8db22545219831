"""A browser of the console, without scripts: it keeps its cookies, and sends forms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from urllib.parse import urlencode

from tests.support.api import PASSWORD, ApiClient
from tests.support.http import Answer, ask

FORM = "application/x-www-form-urlencoded"


class Browser:
    """One browser; `token` is that of the last page that had a form."""

    def __init__(self, api: ApiClient) -> None:
        self.url = api.url
        self.cookies: dict[str, str] = {}
        self.token = ""
        self.set_cookie = ""

    async def get(self, path: str) -> Answer:
        """Return the answer to a request for a page."""
        return await self._ask("GET", path)

    async def page(self, path: str) -> str:
        """Return the text of a page, which must be there."""
        answer = await self.get(path)
        assert answer.status == 200, answer
        return answer.body.decode()

    async def post(
        self,
        path: str,
        fields: Mapping[str, str] | Sequence[tuple[str, str]],
        *,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Answer:
        """Return the answer to a form, sent as a page of the console sends it."""
        given = self.token if token is None else token
        pairs = list(fields.items() if isinstance(fields, Mapping) else fields)
        body = urlencode([*pairs, *([("token", given)] if given else [])]).encode()
        said = {"content-type": FORM, "origin": self.url, **(headers or {})}
        return await self._ask("POST", path, body, said)

    async def log_in(self, user: str, password: str = PASSWORD) -> Answer:
        """Return the answer to a login, after which the token is known."""
        answer = await self.post("/login", {"user": user, "password": password}, token="")
        if answer.status == 303:
            await self.get("/explain")
            await self.get("/config")
        return answer

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        given = {**({"cookie": cookies} if cookies else {}), **(headers or {})}
        answer = await ask(f"{self.url}/console{path}", given, method, body=body)
        if set_cookie := answer.headers.get("set-cookie"):
            self.set_cookie = set_cookie
            name, _, value = set_cookie.partition(";")[0].partition("=")
            self.cookies[name] = value.strip('"')
            if not self.cookies[name]:
                del self.cookies[name]
        if found := re.search(rb'name="token" value="([^"]+)"', answer.body):
            self.token = unescape(found[1].decode())
        return answer
