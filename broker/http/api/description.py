"""The description of the API, in the form of OpenAPI 3.1. It is made from the endpoints."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from broker import __version__
from broker.http.api.endpoint import ROOT, Endpoint
from broker.http.api.entities import FIELDS, SORT
from broker.http.api.idempotency import KEY_CHARACTERS_MAX
from broker.http.api.parameters import TEXT, TEXTS, Parameter
from broker.http.api.problems import MEDIA_TYPE, Problem
from broker.management.entity import attributes_of
from broker.management.response import NO_CONTENT

OPENAPI: Final = "3.1.1"

REF: Final = "#/components/schemas/{model}"

CONVERTER: Final = re.compile(r"\{(\w+):(\w+)\}")

KEY: Final = f"^[ -~]{{1,{KEY_CHARACTERS_MAX}}}$"
"""The pattern of the keys of Idempotency-Key."""

Schema = Mapping[str, object]


def description(known: Sequence[Endpoint]) -> bytes:
    """Return the description of these endpoints, as JSON."""
    schemas, named = _schemas(known)
    paths: dict[str, dict[str, object]] = {}
    for endpoint in known:
        path = ROOT + CONVERTER.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, named)
    whole = {
        "openapi": OPENAPI,
        "info": {
            "title": "jms-broker",
            "version": __version__,
            "description": "The API of the broker for operators.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        # the last: clients on the broker's machine, where clients need no password
        "security": [{"basic": []}, {"bearer": []}, {}],
    }
    return json.dumps(whole).encode()


def _schemas(known: Sequence[Endpoint]) -> tuple[Schema, Mapping[type, Schema]]:
    """Return the schemas of all models, and the schema of each model.

    A record in a list may have only the attributes that the parameter `fields` names.
    """
    models: dict[type, None] = {Problem: None}
    for endpoint in known:
        models.update({each: None for each in (endpoint.body, endpoint.result) if each is not None})
    adapters: list[tuple[type, JsonSchemaMode, TypeAdapter[object]]] = [
        (model, "validation", TypeAdapter(model)) for model in models
    ]
    by_key, defined = TypeAdapter.json_schemas(adapters, ref_template=REF)
    named = {model: by_key[model, "validation"] for model in models}
    found = defined["$defs"]
    assert isinstance(found, dict)
    for endpoint in known:
        if endpoint.result is not None and FIELDS in endpoint.parameters:
            whole = found[endpoint.result.__name__]
            name = _selected(endpoint.result)
            found[name] = {key: value for key, value in whole.items() if key != "required"}
            found[name]["title"] = name
    return found, named


def _selected(record: type) -> str:
    """Return the name of the schema of a record that may lack attributes."""
    return f"Selected{record.__name__}"


def _operation(endpoint: Endpoint, named: Mapping[type, Schema]) -> Schema:
    parameters = [_path_parameter(*each) for each in CONVERTER.findall(endpoint.path)]
    parameters += [_query_parameter(each, endpoint) for each in endpoint.parameters]
    if endpoint.method == "POST":
        text = "a key: sent again, the response is the same"
        parameters.append(_header("Idempotency-Key", text, pattern=KEY))
    if endpoint.is_conditional:
        parameters.append(_header("If-Match", "the ETag that the entity must have, or `*`"))
        text = "`*`: only if there is no such entity"
        parameters.append(_header("If-None-Match", text, pattern=r"^\*$"))
    found: dict[str, object] = {
        "tags": [endpoint.tag],
        "operationId": _id_of(endpoint),
        "summary": endpoint.summary,
        "description": f"Needs the right `{endpoint.right}`.",
        "parameters": parameters,
        "responses": {
            **{
                str(status): _success(endpoint, status, named)
                for status in (endpoint.status, endpoint.other_status)
                if status
            },
            "default": {
                "description": "A problem (RFC 9457)",
                "content": {MEDIA_TYPE: {"schema": named[Problem]}},
            },
        },
    }
    if endpoint.body is not None:
        content = {"application/json": {"schema": named[endpoint.body]}}
        found["requestBody"] = {"required": endpoint.method == "POST", "content": content}
    return found


def _success(endpoint: Endpoint, status: int, named: Mapping[type, Schema]) -> Schema:
    found: dict[str, object] = {"description": endpoint.summary}
    if status == NO_CONTENT:
        return found
    if endpoint.result is None:
        found["content"] = {each: {"schema": {"type": "string"}} for each in endpoint.media_types}
        return found
    schema = named[endpoint.result]
    if FIELDS in endpoint.parameters:
        schema = {"$ref": REF.format(model=_selected(endpoint.result))}
    if endpoint.is_list:
        schema = _page_of(schema)
    found["content"] = {"application/json": {"schema": schema}}
    return found


def _page_of(schema: Schema) -> Schema:
    """Return the schema of a page of entities."""
    return {
        "type": "object",
        "required": ["items", "next"],
        "properties": {
            "items": {"type": "array", "items": schema},
            "next": {"type": ["string", "null"], "description": "`cursor` of the next page"},
            "total": {"type": "integer"},
            "relation": {"enum": ["eq", "gte"]},
        },
    }


def _path_parameter(name: str, converter: str) -> Schema:
    kind = "integer" if converter == "int" else "string"
    return {"name": name, "in": "path", "required": True, "schema": {"type": kind}}


def _query_parameter(parameter: Parameter, endpoint: Endpoint) -> Schema:
    schema = parameter.schema()
    if endpoint.is_list and endpoint.result is not None:
        if parameter is FIELDS:
            schema = {"type": TEXTS, "items": {"enum": list(attributes_of(endpoint.result))}}
        elif parameter is SORT:
            one = f"-?({'|'.join(attributes_of(endpoint.result))})"
            schema = {"type": TEXT, "pattern": f"^({one}(,{one})*)?$"}
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.description,
        "schema": schema,
        # lists are separated by commas
        "explode": False,
    }


def _header(name: str, text: str, *, pattern: str = "") -> Schema:
    schema = {"type": "string", **({"pattern": pattern} if pattern else {})}
    return {"name": name, "in": "header", "description": text, "schema": schema}


def _id_of(endpoint: Endpoint) -> str:
    words = re.findall(r"[a-z]+", CONVERTER.sub("one", endpoint.path))
    return endpoint.method.lower() + "".join(word.capitalize() for word in words)
