"""The file of `jms-broker pipeline run` as commands."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from pyspark_amqp.jobs.chain_file import command_lines
from pyspark_amqp.options import OptionError

KNOWN: Final = {
    "archive": frozenset({"engine", "url", "address", "option", "master", "conf"}),
    "report": frozenset({"engine", "out", "audit", "no-audit", "json", "address"}),
}


def lines(folder: Path, text: str) -> list[list[str]]:
    file = folder / "jobs.toml"
    file.write_text(text)
    return command_lines(file, KNOWN)


@pytest.mark.requirement("PIP-77")
def test_each_table_is_a_command_with_the_options_at_the_top_that_it_knows(tmp_path: Path) -> None:
    text = """
        engine = "duckdb"
        url = "amqp://h"
        master = "local[2]"
        [[job]]
        run = "archive"
        archive = "a b"
        address = "orders"
        option = ["numPartitions=2", "leaseTtl=1h"]
        [[job]]
        run = "report"
        engine = "spark"
        audit = false
        json = true
    """
    assert lines(tmp_path, text) == [
        [
            *("archive", "a b", "--engine", "duckdb", "--url", "amqp://h"),
            *("--master", "local[2]", "--address", "orders"),
            *("--option", "numPartitions=2", "--option", "leaseTtl=1h"),
        ],
        ["report", "--engine", "spark", "--no-audit", "--json"],
    ]


WRONG: Final = [
    pytest.param("jobs = 1", "has no table \\[\\[job\\]\\]", id="no job"),
    pytest.param("[job]\nrun = 'archive'", "has no table", id="a single table"),
    pytest.param("[[job]]\nrun = 'audti'", "job 1: run must be one of archive, report", id="slip"),
    pytest.param("[[job]]", "run must be one of", id="no name"),
    pytest.param("[[job]]\nrun='report'\nurl='x'", "report has no option url", id="not its own"),
    pytest.param("adress='q'\n[[job]]\nrun='report'", "no job has an option adress", id="top"),
    pytest.param("[[job]]\nrun='report'\nout={a=1}", "out is neither a text nor", id="a table"),
    pytest.param(
        "[[job]]\nrun='archive'\nmaster='x'", "for all jobs: give master at the top", id="master"
    ),
    pytest.param("[[job]]\nrun='archive'\nconf=['a=b']", "give conf at the top", id="conf"),
    pytest.param("[[job]\n", "jobs.toml: ", id="no TOML"),
    pytest.param("[[job]]\nrun='report'\n" * 1001, "has 1001 jobs, at most 1000", id="too many"),
]


@pytest.mark.requirement("PIP-77")
@pytest.mark.parametrize(("text", "error"), WRONG)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(OptionError, match=error):
        lines(tmp_path, text)
