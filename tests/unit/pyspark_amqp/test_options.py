"""The options: the allowed values, and the errors for all others."""

from __future__ import annotations

import pickle
from typing import Final

import pytest

from pyspark_amqp.option_kinds import Position
from pyspark_amqp.option_table import TABLE, Use
from pyspark_amqp.options import MODES, OptionError, read_options
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS, MESSAGE_COLUMNS
from tests.support.tidy import ROOT

QUEUE: Final = {"address": "orders"}
TOKEN: Final = {"username": "ann", "tokenFile": "token"}


@pytest.mark.parametrize(
    ("use", "given", "told"),
    [
        (Use.BATCH, {}, "option address: either it or the option subscription"),
        (Use.BATCH, {"address": "q", "subscription": "durable//s"}, "option address: either"),
        (Use.BATCH, {"adress": "q"}, "option adress: there is none; did you mean address?"),
        (Use.BATCH, {"address": ""}, "option address: '' is not allowed; allowed: an address"),
        (
            Use.BATCH,
            QUEUE | {"mode": "lease"},
            "'lease' is not allowed for read; allowed: browse, ",
        ),
        (Use.BATCH, QUEUE | {"mode": "tail"}, "'tail' is not allowed; allowed: lease, browse, "),
        (Use.STREAM, QUEUE | {"mode": "browse"}, "for readStream; allowed: lease, events"),
        (Use.BATCH, QUEUE | {"leaseTtl": "1h"}, "option leaseTtl: it is for readStream, not for"),
        (Use.STREAM, QUEUE | {"leaseTtl": "0s"}, "allowed: a number with ms, s, m, h or d"),
        (Use.STREAM, QUEUE | {"leaseTtl": "soon"}, "'soon' is not allowed; allowed: a number"),
        (Use.STREAM, QUEUE | {"url": "http://h"}, "option url: what is given is not allowed; all"),
        (Use.STREAM, QUEUE | {"url": "amqp://h:0"}, "allowed: amqp://HOST[:PORT] or amqps://"),
        (Use.STREAM, QUEUE | {"url": "amqp://u:secret@h:x"}, "option url: what is given"),
        (Use.STREAM, QUEUE | {"managementUrl": "http://a,http://b"}, "option managementUrl"),
        (
            Use.STREAM,
            QUEUE | {"managementUrl": "https://admin:secret@host:99999"},
            "option managementUrl: what is given is not allowed; allowed: http://HOST[:PORT]",
        ),
        (Use.BATCH, {"mode": "events", "storeUrl": "secret" * 11_000}, "option storeUrl: what is"),
        (Use.STREAM, QUEUE | {"numPartitions": "0"}, "allowed: a whole number from 1 to 256"),
        (Use.STREAM, QUEUE | {"numPartitions": "two"}, "option numPartitions: 'two'"),
        (Use.STREAM, QUEUE | {"failOnLeaseLoss": "yes"}, "allowed: true, false"),
        (Use.STREAM, QUEUE | {"kind": "accepted"}, "option kind: it is not for mode lease"),
        (Use.STREAM, QUEUE | {"startingPosition": "latest"}, "it is not for mode lease"),
        (Use.STREAM, QUEUE | {"saslMechanism": "MAGIC"}, "allowed: ANONYMOUS, PLAIN, SCRAM-SHA-1"),
        (Use.STREAM, QUEUE | {"password": "p"}, "option username"),
        (Use.STREAM, QUEUE | {"tls.certFile": "c.pem"}, "option tls.certFile: it and the option"),
        (Use.STREAM, QUEUE | {"tls.keyPasswordFile": "p"}, "option tls.keyPasswordFile: it is"),
        (Use.STREAM, QUEUE | {"tokenFile": "t"}, "option username: there is a tokenFile"),
        (Use.STREAM, QUEUE | TOKEN | {"password": "p"}, "option tokenFile: it is in place of"),
        (Use.STREAM, QUEUE | TOKEN | {"url": "amqps://h,amqp://g"}, "could read the token"),
        (Use.STREAM, QUEUE | TOKEN | {"managementUrl": "http://h"}, "could read the token"),
        (
            Use.STREAM,
            QUEUE | {"topic": "t"},
            "option topic: it cannot be beside the option address",
        ),
        (Use.STREAM, {"topic": "t"}, "option topic: it needs the option subscription, the name"),
        (Use.STREAM, {"mode": "events", "createAddress": "true"}, "it is not for mode events"),
        (Use.SINK, QUEUE | {"createAddress": "true"}, "it is for read, readStream, not for write"),
        (Use.STREAM, {"subscription": "s"}, "without the option topic; allowed: durable/CLIENT/"),
        (Use.STREAM, {"subscription": "durable//s", "topic": "t"}, "option topic"),
        (Use.BATCH, QUEUE | {"startingPosition": '{"time": 1}'}, "allowed: earliest, latest, a"),
        (Use.BATCH, QUEUE | {"startingPosition": '{"timestamp": "x"}'}, "option startingPosition"),
        (Use.BATCH, QUEUE | {"startingPosition": "["}, "option startingPosition"),
        (
            Use.BATCH,
            QUEUE | {"startingPosition": "latest"},
            "'latest' is not allowed for mode browse, which shows what waits; allowed: earliest, ",
        ),
        (Use.STREAM, {"mode": "events", "maxBytesPerTrigger": "9"}, "it is not for mode events"),
        (Use.STREAM, {"mode": "events", "maxTriggerDelay": "9s"}, "it is not for mode events"),
        (Use.STREAM, {"mode": "events", "partitionBy": "group"}, "it is not for mode events"),
        (Use.BATCH, {"mode": "events", "selector": "a = 1"}, "selector: it is not for mode events"),
        (Use.BATCH, {"mode": "events", "storeUrl": "mysql://h/d"}, "allowed: postgresql://…, sql"),
        (
            Use.BATCH,
            {"mode": "events", "storeUrl": "sqlite:///a", "managementUrl": "http://h"},
            "option storeUrl: it cannot be beside the option managementUrl",
        ),
        (Use.SINK, {"selector": "a = 1"}, "option selector: it is for read, readStream, not for "),
        (Use.SINK, {"delivery": "once"}, "allowed: staged, at-least-once"),
        (Use.SINK, {"replay": "raw", "bodyType": "text"}, "option bodyType: it is not for replay"),
        (Use.SINK, {"asyncProgressTrackingEnabled": "true"}, "not supported, only false"),
    ],
)
@pytest.mark.requirement("PIP-32")
def test_a_bad_option_is_named_with_what_is_allowed(
    use: Use, given: dict[str, str], told: str
) -> None:
    with pytest.raises(OptionError) as raised:
        read_options(given, use)
    assert told in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(("use", "modes"), MODES.items())
def test_the_first_mode_is_what_is_read_where_none_is_said(
    use: Use, modes: tuple[str, ...]
) -> None:
    assert read_options(QUEUE, use).mode == modes[0]


def test_names_and_words_are_read_in_any_case() -> None:
    options = read_options({"ADDRESS": "q", "Mode": "BROWSE", "includebody": "FALSE"}, Use.BATCH)
    assert (options.text("address"), options.mode) == ("q", "browse")
    assert not options.is_set("includeBody")


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("250ms", 250), ("90s", 90_000), ("1h", 3_600_000), ("never", 0)]
)
def test_a_duration_has_a_unit(text: str, milliseconds: int) -> None:
    options = read_options({"address": "q", "leaseTtl": text}, Use.STREAM)
    assert options.number("leaseTtl") == milliseconds


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", Position()),
        ("17", Position(number=17)),
        ('{"timestamp": 1700000000000}', Position(time_ms=1_700_000_000_000)),
    ],
)
def test_a_reading_begins_at_a_position_or_a_time(text: str, position: Position) -> None:
    options = read_options({"address": "q", "startingPosition": text}, Use.BATCH)
    assert options.position("startingPosition") == position


def test_several_brokers_are_told_with_commas() -> None:
    options = read_options({"address": "q", "url": "amqp://a, amqps://b:1234/"}, Use.STREAM)
    assert options.urls == ("amqp://a", "amqps://b:1234")


def test_no_secret_is_shown_and_all_of_it_reaches_the_executors() -> None:
    options = read_options(
        QUEUE | {"username": "ann", "password": "s3cret", "url": "amqp://ann:s3cret@h"}, Use.STREAM
    )
    assert "s3cret" not in repr(options)
    assert pickle.loads(pickle.dumps(options)).text("password") == "s3cret"


@pytest.mark.requirement("SEC-09")
@pytest.mark.parametrize(
    "urls",
    [
        {},
        {"url": "amqps://h", "managementUrl": "https://h"},
        {"url": "amqp://127.0.0.2", "managementUrl": "http://[::1]:1"},
    ],
)
def test_a_token_goes_over_tls_or_to_this_machine(urls: dict[str, str]) -> None:
    assert read_options(QUEUE | TOKEN | urls, Use.STREAM).text("tokenFile") == "token"


def test_what_spark_hands_over_of_its_own_is_let_pass() -> None:
    given = QUEUE | {"checkpointLocation": "/tmp/x", "asyncProgressTrackingEnabled": "false"}
    assert read_options(given, Use.STREAM).given == {"address"}


@pytest.mark.parametrize("option", TABLE, ids=lambda option: option.name)
def test_each_default_is_allowed(option: object) -> None:
    assert option in TABLE
    [row] = [each for each in TABLE if each is option]
    if row.default is not None:
        row.kind.read(row.default)


def test_the_page_has_every_option_and_column() -> None:
    page = (ROOT / "docs" / "spark" / "data-source.md").read_text()
    for option in TABLE:
        row = f"| `{option.name}` | {option.default or ''} | {option.kind.allowed} |"
        assert row in page
        assert option.about in page
    for column in (*MESSAGE_COLUMNS, *EVENT_LOG_COLUMNS):
        assert f"`{column}`" in page
