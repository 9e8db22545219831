"""Each of the twenty faults is planted for real, and changes the finding of its own code alone."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("proton")

from broker import Broker
from broker.cli.client import send
from broker.doctor.checked_broker import CheckedBroker
from broker.doctor.checks import CHECKS, examine
from broker.doctor.finding import FAIL, OK, SKIP, WARN, DoctorFinding, joined, not_checked, well
from broker.security.users import Users
from tests.support.certificates import Authority
from tests.support.doctor_site import PASSWORD, DoctorSite, answering, make_site

DAY_S: Final = 86_400


class Planted:
    """A healthy site with a running broker, and what undoes a fault."""

    def __init__(self, site: DoctorSite, broker: Broker, undo: ExitStack) -> None:
        self.site: Final = site
        self.broker = broker
        self.undo: Final = undo

    def findings(self) -> dict[str, DoctorFinding]:
        with answering(self.broker.url) as running:
            return self.site.findings(running)


@pytest.fixture(scope="module")
def idle_broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def healthy_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy")
    make_site(folder)
    return folder


@pytest.fixture
def planted(tmp_path: Path, healthy_files: Path, idle_broker: Broker) -> Iterator[Planted]:
    shutil.copytree(healthy_files, tmp_path, dirs_exist_ok=True)
    with ExitStack() as undo:
        yield Planted(DoctorSite(tmp_path), idle_broker, undo)


# -- the faults


def few_descriptors(to: Planted) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    to.undo.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
    resource.setrlimit(resource.RLIMIT_NOFILE, (150, limits[1]))


def clock_set_back(to: Planted) -> None:
    at = time.time() + DAY_S
    os.utime(to.site.database, (at, at))


def users_file_for_all(to: Planted) -> None:
    to.site.users.chmod(0o644)


def no_room_on_disk(to: Planted) -> None:
    to.site.settings["disk_free_min"] = 2**50


def store_of_a_newer_version(to: Planted) -> None:
    with sqlite3.connect(to.site.database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()


def expired_certificate(to: Planted) -> None:
    certificate, key = to.site.issue("old", expired=True)
    to.site.settings["listener"] = [to.site.listener(certificate=certificate, key=key)]


def certificate_of_another_host(to: Planted) -> None:
    files = {"certificate": to.site.certificate, "key": to.site.key}
    to.site.settings["listener"] = [to.site.listener(name=[{"host": "shop.example", **files}])]


def key_of_another_certificate(to: Planted) -> None:
    _, key = to.site.issue("other")
    to.site.settings["listener"] = [to.site.listener(key=key)]


def authority_without_its_list(to: Planted) -> None:
    crl = to.site.folder / "revoked.pem"
    crl.write_bytes(Authority().crl([], datetime(2999, 1, 1, tzinfo=UTC)))
    asking = {
        "client_certificates": "ask",
        "client_ca": str(Authority().write(to.site.folder, "clients")),
        "crl": str(crl),
    }
    to.site.settings["listener"] = [to.site.listener(**asking)]


def plain_listener_for_all(to: Planted) -> None:
    to.site.settings["bind"] = "0.0.0.0"


def plain_passwords_for_all(to: Planted) -> None:
    to.site.settings.update(bind="0.0.0.0", plain="always")


def http_for_all(to: Planted) -> None:
    to.site.settings["http"] = {"port": 8161, "host": "0.0.0.0"}


def user_without_scram(to: Planted) -> None:
    Users(to.site.users).add("old", PASSWORD, scram=False)


def user_without_roles(to: Planted) -> None:
    with to.site.users.open("a") as file:
        file.write('\n[[user]]\nname = "guest"\ncertificates = ["guest.example"]\n')


def dead_rule(to: Planted) -> None:
    with to.site.rules.open("a") as file:
        file.write('[[rule]]\nid = "typo"\nwho = ["role:aplication"]\ncan = ["send"]\n')
        file.write('on = ["queue:x"]\n')


def strangers_let_in(to: Planted) -> None:
    to.site.settings["allow_anonymous"] = True


def dead_letters_coming(to: Planted) -> None:
    """Let dead letters come in for as long as the doctor looks."""
    to.broker = to.undo.enter_context(Broker())
    ended = threading.Event()

    def bodies() -> Iterator[str]:
        while not ended.is_set():
            yield "dead"

    sent = threading.Semaphore(0)
    thread = threading.Thread(
        target=lambda: send(
            to.broker.url, "DLQ", bodies(), capability=None, timeout_s=10, confirmed=sent.release
        )
    )
    thread.start()
    to.undo.callback(thread.join)
    to.undo.callback(ended.set)
    assert sent.acquire(timeout=10)
    to.site.watch_s = 0.2


def dead_letters_left(to: Planted) -> None:
    _send(to, "DLQ")


def messages_without_consumer(to: Planted) -> None:
    _send(to, "lonely")


def _send(to: Planted, queue: str) -> None:
    """Send a message to a queue of a broker of this test alone."""
    to.broker = to.undo.enter_context(Broker())
    send(to.broker.url, queue, ["x"], capability=None, timeout_s=10, confirmed=lambda: None)


def no_uvloop(to: Planted) -> None:
    found = sys.modules.pop("uvloop", None)

    def put_back() -> None:
        del sys.modules["uvloop"]
        if found is not None:
            sys.modules["uvloop"] = found

    sys.modules["uvloop"] = None  # type: ignore[assignment]  # as if it were not installed
    to.undo.callback(put_back)


def foreign_storage(to: Planted) -> None:
    package = to.site.folder / "site" / "storage"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    sys.path.append(str(package.parent))
    to.undo.callback(sys.path.remove, str(package.parent))


def foreign_pipeline_before_ours(to: Planted) -> None:
    folder = to.site.folder / "site"
    folder.mkdir()
    (folder / "pyspark_amqp.py").write_text("")
    sys.path.insert(0, str(folder))
    to.undo.callback(sys.path.remove, str(folder))


def old_backup(to: Planted) -> None:
    to.site.record_backup(time.time() - 8 * DAY_S)


Fault = Callable[[Planted], None]

# code, fault, its level, a part of the finding, a part of the remedy
FAULTS: Final = [
    pytest.param("D01", few_descriptors, FAIL, "may open 150 files", "LimitNOFILE", id="D01"),
    pytest.param("D02", clock_set_back, FAIL, "the clock was set back", "timedatectl", id="D02"),
    pytest.param("D03", users_file_for_all, FAIL, "mode 0644", "chmod 600", id="D03"),
    pytest.param("D05", no_room_on_disk, FAIL, "disk_free_min is", "make room", id="D05"),
    pytest.param("D06", store_of_a_newer_version, FAIL, "a newer", "start the newer", id="D06"),
    pytest.param("D07", expired_certificate, FAIL, "it has expired", "replace the file", id="D07"),
    pytest.param("D08", certificate_of_another_host, FAIL, "shop.example", "names", id="D08"),
    pytest.param("D09", key_of_another_certificate, FAIL, "does not belong", "correct", id="D09"),
    pytest.param("D09", authority_without_its_list, FAIL, "has no list", "correct", id="D09, CRL"),
    pytest.param("D10", plain_listener_for_all, WARN, "without TLS: amqp", "amqps", id="D10"),
    pytest.param(
        "D10", plain_passwords_for_all, FAIL, 'plain = "always"', "amqps", id="D10, PLAIN"
    ),
    pytest.param("D11", http_for_all, FAIL, "HTTP at 0.0.0.0", "http.tls", id="D11"),
    pytest.param("D12", user_without_scram, WARN, "for SCRAM: old", "user passwd", id="D12"),
    pytest.param("D13", user_without_roles, WARN, "any role: guest", "--role", id="D13"),
    pytest.param("D14", dead_rule, WARN, "typo: ", "acl check", id="D14"),
    pytest.param("D15", strangers_let_in, FAIL, "without a login", "allow_anonymous", id="D15"),
    pytest.param("D16", dead_letters_coming, FAIL, "DLQ (+", "message retry", id="D16"),
    pytest.param("D16", dead_letters_left, WARN, "DLQ (1)", "message retry", id="D16, left"),
    pytest.param("D17", messages_without_consumer, WARN, "lonely (1)", "consumers", id="D17"),
    pytest.param("D18", no_uvloop, WARN, "uvloop is not installed", "pip install", id="D18"),
    pytest.param("D19", foreign_storage, WARN, "storage/__init__.py", "virtual", id="D19"),
    pytest.param("D19", foreign_pipeline_before_ours, FAIL, "before", "rename", id="D19, before"),
    pytest.param("D20", old_backup, WARN, "8 days ago", "jms-broker backup", id="D20"),
]
"""Every code but D04, whose fault is a slow disk: tests/interop/test_command_line_doctor.py."""


def test_the_table_has_every_code() -> None:
    assert {str(each.values[0]) for each in FAULTS} == set(CHECKS) - {"D04"}
    assert list(CHECKS) == [f"D{number:02}" for number in range(1, 21)]


def changed(before: Mapping[str, DoctorFinding], after: Mapping[str, DoctorFinding]) -> set[str]:
    """Return the codes whose level has changed, and D18, to which a fault can be added.

    A check that the fault of another makes impossible does not count. D04 counts only if it fails:
    other programs use the disk of the tests, too.
    """
    found = {code for code in CHECKS if after[code].level not in {before[code].level, SKIP}}
    if after["D18"].finding != before["D18"].finding:
        found.add("D18")
    return found if after["D04"].level == FAIL else found - {"D04"}


@pytest.mark.requirement("OPS-13")
@pytest.mark.parametrize(("code", "plant", "level", "finding", "remedy"), FAULTS)
def test_a_fault(
    planted: Planted, code: str, plant: Fault, level: str, finding: str, remedy: str
) -> None:
    before = planted.findings()
    plant(planted)
    after = planted.findings()
    assert changed(before, after) == {code}
    found = after[code]
    assert found.level == level
    assert finding in found.finding
    assert remedy in found.remedy
    assert "\n" not in found.finding + found.remedy


@pytest.mark.requirement("OPS-13")
def test_a_healthy_broker(planted: Planted) -> None:
    found = planted.findings()
    assert [each.code for each in found.values() if each.level == FAIL] == []
    healthy = {code for code, each in found.items() if each.level in {OK, SKIP}}
    # the checkout is interpreted, and the disk of the tests may be slow or rather full
    assert set(CHECKS) - healthy <= {"D04", "D05", "D18"}
    assert all(each.remedy == "" for each in found.values() if each.level in {OK, SKIP})


@pytest.mark.requirement("OPS-13")
def test_without_settings_and_broker_only_the_installation_is_checked() -> None:
    found = examine(CheckedBroker(settings=None, now_s=time.time()))
    made = {each.code for each in found if each.level != SKIP}
    assert made == {"D18", "D19"}
    assert all(each.finding.startswith("not checked: ") for each in found if each.level == SKIP)


def test_a_check_of_which_a_part_was_not_made_is_not_called_sound() -> None:
    found = joined([well("one"), not_checked("no file")], "all are sound")
    assert (found.level, found.finding) == (SKIP, "not checked: no file")
