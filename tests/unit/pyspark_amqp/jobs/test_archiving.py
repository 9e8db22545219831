"""The options that each source of an archive job gets."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from pyspark_amqp.jobs.archive import source_name
from pyspark_amqp.jobs.archiving import Archiving, check_name, use_of
from pyspark_amqp.jobs.layout import EVENTS, MESSAGES, WHATS, ArchiveError
from pyspark_amqp.options import OptionError, read_options

URL: Final = "amqp://localhost:5672"

GIVEN: Final = [
    ("leaseTtl", "6h", "lease", {MESSAGES}),
    ("storeUrl", "sqlite:///s.db", "lease", {EVENTS}),
    ("pollTimeoutMs", "5", "browse", {EVENTS}),
    ("pushdown", "true", "browse", {MESSAGES}),
    ("numPartitions", "2", "lease", {MESSAGES, EVENTS}),
]


def asked(option: dict[str, str], mode: str, place: Path = Path("archive")) -> Archiving:
    return Archiving.asked(
        place,
        {"url": URL, **option},
        whats=WHATS,
        address="q",
        subscription=None,
        selector=None,
        mode=mode,
        every=None,
    )


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(("name", "value", "mode", "whose"), GIVEN, ids=[g[0] for g in GIVEN])
def test_an_option_goes_to_whom_it_is_for(
    name: str, value: str, mode: str, whose: set[str]
) -> None:
    sources = asked({name: value}, mode).sources
    assert {what for what, given in sources.items() if name in given} == whose
    for given in sources.values():
        assert given["url"] == URL
        read_options(given, use_of(given))


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(
    ("name", "mode"), [("leaseTtl", "browse"), ("bodyType", "lease"), ("leaseTtll", "lease")]
)
def test_what_is_for_nobody_is_refused(name: str, mode: str) -> None:
    sources = asked({name: "text"}, mode).sources
    for given in sources.values():
        with pytest.raises(OptionError, match=f"option {name}"):
            read_options(given, use_of(given))


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("propertiesAs", "json", "values with their types"),
        ("propertiesas", "string", "values with their types"),
        ("includeRaw", "false", "bit for bit"),
        ("mode", "lease", "use --mode"),
        ("address", "q", "use --address"),
        ("Subscription", "durable/c/s", "use --subscription"),
        ("selector", "a = 1", "use --selector"),
        ("failOnDataLoss", "true", "the audit"),
    ],
)
def test_what_the_job_sets_itself_is_no_option(name: str, value: str, reason: str) -> None:
    with pytest.raises(OptionError, match=f"option {name}: `archive` sets it itself: .*{reason}"):
        asked({name: value}, "browse")


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        ("q" * 247, True),
        ("q" * 248, False),
        ("é" * 124, False),
        ("/" * 82, True),
        ("/" * 83, False),
    ],
    ids=["most", "too long", "of two bytes each", "most of three bytes", "of three bytes each"],
)
def test_a_queue_whose_folder_has_too_long_a_name(address: str, is_allowed: bool) -> None:
    if is_allowed:
        check_name(address)
        return
    with pytest.raises(OptionError, match=r"option address: .* 255 are allowed"):
        check_name(address)


@pytest.mark.requirement("PIP-60")
@pytest.mark.parametrize("mode", ["browse", "lease"])
def test_messages_are_archived_by_one_job_at_a_time(tmp_path: Path, mode: str) -> None:
    job = asked({}, mode, tmp_path)
    name = source_name(job.archive, MESSAGES, job.sources[MESSAGES])
    with (
        job.archive.reserved(name, MESSAGES),
        pytest.raises(ArchiveError, match="another job archives the same messages"),
    ):
        job.check("duckdb")


@pytest.mark.requirement("PIP-60")
@pytest.mark.parametrize(
    ("option", "rows"),
    [({}, 100_000), ({"maxMessagesPerTrigger": "7"}, 7), ({"maxmessagespertrigger": "8"}, 8)],
    ids=["by default", "as the option says", "whose name is in lower case"],
)
def test_the_event_log_is_archived_in_large_batches(option: dict[str, str], rows: int) -> None:
    sources = asked(option, "lease").sources
    read = {what: read_options(given, use_of(given)) for what, given in sources.items()}
    assert read[EVENTS].number("maxMessagesPerTrigger") == rows
    assert read[MESSAGES].number("maxMessagesPerTrigger") == (rows if option else 10_000)
