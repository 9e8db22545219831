"""The pipeline over TLS: its jobs as a user with one role, and what is shown of its secrets."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from proton import Message
from proton.utils import BlockingConnection
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from pyspark_amqp.engines.engine import Engine
from pyspark_amqp.jobs.archiving import Archiving
from pyspark_amqp.jobs.auditing import Auditing
from pyspark_amqp.jobs.replaying import Replaying
from pyspark_amqp.jobs.report import gather
from tests.interop.broker_process import BrokerProcess, command, environment
from tests.spark import session
from tests.support.pipeline_site import (
    KEY_PASSWORD,
    PASSWORD,
    USER,
    PipelineSite,
    as_https,
    flags,
)

pytestmark = pytest.mark.requirement("SEC-09")

COUNT: Final = 40
AT_ONCE_S: Final = 20
"""Seconds, most of them Spark's own, within which a refusal ends a query."""
APP: Final = "engine"
LOGGED: Final = '[[address]]\npattern = "orders*"\nevent_log = true\n'

TOKEN: Final = "eyJhbGciOiJub25lIn0.token-canary"
SECRETS: Final = (PASSWORD, KEY_PASSWORD, TOKEN, "canary")
"""All that must be shown nowhere; the last is in each of them."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> PipelineSite:
    site = PipelineSite(tmp_path_factory.mktemp("site"))
    site.users.add("app", APP, roles=["application"])
    return site


@pytest.fixture(scope="module")
def broker(site: PipelineSite) -> Iterator[BrokerProcess]:
    settings = f'store = "sqlite:///store.db"\n{site.toml()}{LOGGED}'
    process = BrokerProcess(site.folder, settings=settings)
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


def login(broker: BrokerProcess, options: dict[str, str]) -> dict[str, str]:
    return options | {"managementUrl": as_https(broker.http_url)}


def fill(broker: BrokerProcess, address: str) -> None:
    connection = BlockingConnection(broker.url.replace("//", f"//app:{APP}@"), timeout=30)
    sender = connection.create_sender(address)
    for number in range(COUNT):
        sender.send(Message(body=f"text {number}", id=f"ID:{address}-{number}", durable=True))
    connection.close()


def say(_: str) -> None:
    """Report nothing."""


def archived(
    engine: Engine, options: dict[str, str], place: Path, *whats: str, **asked: str
) -> dict[str, object]:
    named: dict[str, str | None] = dict.fromkeys(("address", "subscription", "selector", "mode"))
    job = Archiving.asked(place, options, whats=whats, every=None, **{**named, **asked})
    job.check(engine.name)
    job.run(engine, say)
    return job.summary()


@pytest.mark.parametrize(
    ("kind", "engine"),
    [("password", "spark"), ("certificate", "duckdb")],
    indirect=["engine"],
)
def test_a_user_with_the_role_pipeline_alone_runs_every_job(
    engine: Engine, broker: BrokerProcess, site: PipelineSite, tmp_path: Path, kind: str
) -> None:
    by_amqp = site.by_password() if kind == "password" else site.by_certificate()
    by_both = login(broker, by_amqp)
    source, target = f"orders.{kind}", f"orders.{kind}.again"
    fill(broker, source)
    place = tmp_path / "archive"
    assert archived(engine, by_both, place, "messages", address=source)["messages"] == COUNT
    leased = archived(
        engine, by_amqp, tmp_path / "leased", "messages", address=source, mode="lease"
    )
    assert leased["messages"] == COUNT
    assert archived(engine, by_both, place, "events")["events"]

    auditing = Auditing(place, by_amqp, addresses=(source,))
    auditing.check()
    verdict, _ = auditing.run(engine, say)
    assert verdict.holds
    reporting = Auditing(None, by_both, addresses=(source,))
    assert gather(reporting.rows(engine)) is not None

    for delivery in ("staged", "at-least-once"):
        replaying = Replaying(
            place,
            {**by_amqp, "delivery": delivery},
            to=f"{target}.{delivery}",
            since=None,
            until=None,
            addresses=(source,),
            subscription=None,
            selector=None,
            ids=(),
        )
        replaying.check(dry_run=False)
        replaying.run(engine, say, rate=None, skip=0, dry_run=False)
        again = engine.source({**by_both, "address": f"{target}.{delivery}"}, ["position"])
        assert len(again.rows()) == COUNT


REFUSED: Final = [
    pytest.param(
        {"password": "wrong-canary"},
        r"LoginError: no broker: amqps://.*the name or the password",
        id="a wrong password",
    ),
    pytest.param(
        {"username": "app", "password": APP},
        "DeniedError: .*unauthorized|DeniedError: OPEN lease",
        id="a missing right",
    ),
]


@pytest.mark.requirement("PIP-56")
@pytest.mark.parametrize(("changed", "told"), REFUSED)
def test_a_stream_that_is_refused_ends_at_once(
    spark: SparkSession,
    broker: BrokerProcess,
    site: PipelineSite,
    tmp_path: Path,
    changed: dict[str, str],
    told: str,
) -> None:
    fill(broker, "orders.refused")
    options = site.by_password() | {"address": "orders.refused", "amqp.timeout": "10m"} | changed
    rows = spark.readStream.format("amqp").options(**options).load()
    begun = time.monotonic()
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(StreamingQueryException, match=told):
        query.awaitTermination(AT_ONCE_S)
    assert time.monotonic() - begun < AT_ONCE_S


LOG4J: Final = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c: %m%n
"""


def test_no_log_shows_a_secret(broker: BrokerProcess, site: PipelineSite, tmp_path: Path) -> None:
    """Neither what the command prints, nor Spark's log, nor its event log."""
    fill(broker, "orders.logs")
    events = tmp_path / "spark-events"
    events.mkdir()
    options = login(broker, site.by_certificate() | site.by_password())
    del options["password"]
    log, configuration = tmp_path / "spark.log", tmp_path / "log4j2.properties"
    configuration.write_text(LOG4J.format(file=log))
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={configuration.as_uri()}",
    }
    done = subprocess.run(
        [
            *(*command(), "pipeline", "archive", str(tmp_path / "archive")),
            *("--address", "orders.logs", "--mode", "lease", *flags(options), "--json"),
            *(word for pair in settings.items() for word in ("--conf", "=".join(pair))),
        ],
        env=environment(JMS_BROKER_PASSWORD=PASSWORD) | session.given(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    files = [each for each in events.rglob("*") if each.is_file()]
    assert files
    texts = [done.stdout, done.stderr, log.read_text(), *(each.read_text() for each in files)]
    assert any("SparkListenerSQLExecutionStart" in text for text in texts)
    assert "MicroBatch" in log.read_text()
    for text in texts:
        assert not any(secret in text for secret in SECRETS)


def shown(frame: object) -> str:
    """Return all plans of a frame, as Spark shows them."""
    plans: object = frame._jdf.queryExecution()  # type: ignore[attr-defined]
    return str(plans.toString()) + str(plans.stringWithStats())  # type: ignore[attr-defined]


def test_no_plan_and_no_error_shows_a_secret(
    spark: SparkSession, broker: BrokerProcess, site: PipelineSite, tmp_path: Path
) -> None:
    fill(broker, "orders.plans")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    in_url = site.url.replace("//", f"//{USER}:{PASSWORD}@")
    right = [
        login(broker, site.by_certificate()),
        {"url": in_url, "tls.caFile": str(site.ca)},
    ]
    wrong = [
        site.by_password() | {"username": "eve", "password": "wrong-canary"},
        {"url": site.url, "tls.caFile": str(site.ca), "username": "eve", "tokenFile": str(token)},
    ]
    for options in (*right, *wrong):
        asked = options | {"address": "orders.plans", "amqp.timeout": "1s", "numPartitions": "1"}
        frame = spark.read.format("amqp").options(**asked).load()
        texts = [shown(frame), str(frame)]
        if options in right:
            assert frame.count() == COUNT
        else:
            with pytest.raises(PySparkException) as caught:
                frame.count()
            texts.append(str(caught.value))
            assert "Authentication failed" in texts[-1]
        stream = spark.readStream.format("amqp").options(**asked).load()
        texts.append(shown(stream))
        assert "tls.caFile=" in texts[-1], "the plan of a stream shows the options"
        for text in texts:
            assert text
            assert not any(secret in text for secret in SECRETS), text
