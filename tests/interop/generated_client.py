"""Uses a client that was generated from the API's description, as a program of an operator does.

    python generated_client.py http://127.0.0.1:8161

The generated package `broker_client` is on the path. Each response is parsed by the client's own
models, so a description that is not true ends the program with an error.
"""

from __future__ import annotations

import sys
import urllib.request
from importlib import import_module
from typing import Any


def call(tag: str, name: str) -> Any:
    """Return the function of an operation that returns status and parsed content."""
    return import_module(f"broker_client.api.{tag}.{name}").sync_detailed


def model(name: str) -> Any:
    """Return a model of the client."""
    return getattr(import_module("broker_client.models"), name)


def queues(client: Any) -> None:
    """Create, list and read queues, and delete one that is not there."""
    put = call("queues", "put_queues_one")
    for status in (201, 200):
        made = put("or/ders", client=client, body=model("NodeBody")())
        assert made.status_code == status, made
        assert made.parsed.name == "or/ders", made
    page = call("queues", "get_queues")(client=client, sort="-messages,name", limit=1)
    assert [each.name for each in page.parsed.items] == ["or/ders"], page
    assert call("queues", "get_queues_one")("or/ders", client=client).parsed.messages == 0
    missing = call("queues", "delete_queues_one")("missing", client=client)
    assert missing.status_code == 404, missing
    assert missing.parsed.detail == "no queue missing", missing


def messages(client: Any, url: str) -> None:
    """Read a message, cut nothing of it, and move it."""
    sent = urllib.request.Request(
        f"{url}/jms/queue/or/ders?jms.messageType=TextMessage", data=b"hello", method="POST"
    )
    sent.add_header("content-type", "text/plain")
    urllib.request.urlopen(sent).close()
    (found,) = call("messages", "get_messages")(client=client, queue="or/ders").parsed.items
    number = int(found.identity)
    content = call("messages", "get_messages_one")(number, client=client, queue="or/ders")
    assert content.parsed.body_kind == "text", content
    body = call("messages", "get_messages_one_body")(number, client=client, queue="or/ders")
    assert body.content == b"hello", body
    put = call("queues", "put_queues_one")
    assert put("others", client=client, body=model("NodeBody")()).status_code == 201
    action = model("MessageActionBody").from_dict(
        {"action": "move", "from": {"queue": "or/ders"}, "all": True, "to": "others"}
    )
    begun = call("message_actions", "post_message_actions")(client=client, body=action)
    assert begun.status_code == 202, begun
    job = call("jobs", "get_jobs_one")(begun.parsed.id, client=client)
    assert (job.parsed.state, job.parsed.done) == ("done", 1), job


def others(client: Any) -> None:
    """Read what has no entity of its own."""
    assert call("overview", "get_overview")(client=client).parsed.version
    assert "credit" in call("config", "get_config")(client=client).parsed.settings
    rules = call("rules", "get_rules")(client=client, built_in=True).parsed.items
    assert {each.effect for each in rules} == {"allow"}, rules
    question = model("AccessBody")(verb="send", resource="queue:or/ders", user="ann")
    explained = call("access", "post_access_explain")(client=client, body=question)
    assert explained.parsed.decision == "refused", explained


if __name__ == "__main__":
    url = sys.argv[1]
    opened = import_module("broker_client").Client(base_url=url)
    queues(opened)
    messages(opened, url)
    others(opened)
    print("done")
