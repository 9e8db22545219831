"""The description of the API as a plain page, without scripts, and without a foreign host."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from broker import __version__
from broker.http.api.endpoint import ROOT, Endpoint
from broker.http.api.parameters import Parameter

STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "code{font-family:ui-monospace,monospace}table{border-collapse:collapse}"
    "th,td{text-align:left;padding:.2em .8em .2em 0;vertical-align:top}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#9cf}}"
)

HASH: Final = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

PAGE_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{HASH}'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
}


def page_of(known: Sequence[Endpoint]) -> str:
    """Return the page, in HTML."""
    body = "".join(_section(endpoint) for endpoint in known)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>API of jms-broker</title><style>{STYLE}</style></head><body><main>"
        f"<h1>API of jms-broker {escape(__version__)}</h1>"
        f'<p>All paths are below <code>{ROOT}</code>. For programs: <a href="/openapi.json">'
        f"the description in OpenAPI</a>.</p>{body}</main></body></html>"
    )


def _section(endpoint: Endpoint) -> str:
    right = escape(endpoint.right)
    parts = [
        f"<h2><code>{endpoint.method} {escape(endpoint.path)}</code></h2>",
        f"<p>{escape(endpoint.summary)}. Needs the right <code>{right}</code>.</p>",
    ]
    if endpoint.parameters:
        rows = [(each.name, _type_of(each), each.description) for each in endpoint.parameters]
        parts.append(_table(("parameter", "type", "meaning"), rows))
    if endpoint.body is not None and endpoint.body.model_fields:
        fields = endpoint.body.model_fields
        rows = [
            (info.alias or name, "needed" if info.is_required() else "", info.description or "")
            for name, info in fields.items()
        ]
        parts.append(_table(("field of the body", "", "meaning"), rows))
    return "".join(parts)


def _type_of(parameter: Parameter) -> str:
    return " | ".join(parameter.choices) or parameter.type


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table><thead><tr>{row(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"
