"""The file of `jms-broker pipeline run`: jobs that run one after another, on one engine.

    engine = "spark"
    url = "amqp://localhost:5672"

    [[job]]
    run = "archive"
    archive = "./archive"
    address = "orders"

A table `[[job]]` has the job's name, its archive, and its options by their long names. Options at
the top are those of each job that knows them. Those of Spark's session are at the top only.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pyspark_amqp.options import OptionError

RUN: Final = "run"
ARCHIVE: Final = "archive"
JOB: Final = "job"

OF_ALL: Final = ("master", "conf")
"""Options of the session of Spark, which all jobs share."""

JOBS_MAX: Final = 1000
"""Maximum jobs of one file."""

Known = Mapping[str, frozenset[str]]
"""The long options of each job, without hyphens."""


def command_lines(file: Path, known: Known) -> list[list[str]]:
    """Return the words of each job's command; raise OptionError if the file is wrong."""
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{file}: {error}") from None
    jobs = told.pop(JOB, None)
    if not isinstance(jobs, list) or not jobs or not all(isinstance(each, dict) for each in jobs):
        raise OptionError(f"{file} has no table [[job]]")
    if len(jobs) > JOBS_MAX:
        raise OptionError(f"{file} has {len(jobs)} jobs, at most {JOBS_MAX} are allowed")
    for name in told:
        if not any(name in options for options in known.values()):
            raise OptionError(f"{file}: no job has an option {name}")
    return [_words(f"{file}, job {number}", job, told, known) for number, job in enumerate(jobs, 1)]


def _words(
    where: str, job: Mapping[str, Any], common: Mapping[str, Any], known: Known
) -> list[str]:
    name = str(job.get(RUN))
    if name not in known:
        raise OptionError(f"{where}: run must be one of {', '.join(known)}, not {name}")
    words = [name]
    if ARCHIVE in job:
        words.append(str(job[ARCHIVE]))
    meant = {key: value for key, value in common.items() if key in known[name]}
    for key, value in {**meant, **job}.items():
        if key in (RUN, ARCHIVE):
            continue
        if key not in known[name]:
            raise OptionError(f"{where}: {name} has no option {key}")
        if key in OF_ALL and key in job:
            raise OptionError(
                f"{where}: Spark starts once, for all jobs: give {key} at the top of the file"
            )
        if value is False:
            # a flag is off by default, unless there is an option that says no
            words += [f"--no-{key}"] if f"no-{key}" in known[name] else []
        else:
            words += _option(f"{where}: {key}", key, value)
    return words


def _option(where: str, key: str, value: object) -> Iterator[str]:
    """Yield the words of an option, which a list repeats."""
    for each in value if isinstance(value, list) else [value]:
        if each is True:
            yield f"--{key}"
        elif isinstance(each, (str, int, float)) and not isinstance(each, bool):
            yield from (f"--{key}", str(each))
        else:
            raise OptionError(f"{where} is neither a text nor a number, true or false")
