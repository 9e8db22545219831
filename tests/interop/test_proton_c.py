"""A C program on Debian's Qpid Proton against a broker with TLS: PLAIN, and EXTERNAL."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.interop.conftest import not_available
from tests.interop.secured_broker import SHOP, SHOP_PASSWORD, SecuredBroker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requirement("SEC-01"),
    pytest.mark.requirement("SEC-02"),
]

SOURCE: Final = Path(__file__).parent / "proton_c" / "secured.c"
RUN_SECONDS: Final = 60


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled program; skip without a compiler or Proton's headers."""
    if shutil.which("cc") is None:
        not_available("cc is not installed: no test with Proton in C")
    probe = "#include <proton/proactor.h>\n"
    preprocessed = ["cc", "-E", "-o", os.devnull, "-xc", "-"]
    if subprocess.run(preprocessed, input=probe, text=True, stderr=subprocess.DEVNULL).returncode:
        not_available("libqpid-proton11-dev is not installed: no test with Proton in C")
    built = tmp_path_factory.mktemp("proton-c") / "secured"
    command = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(built), str(SOURCE)]
    subprocess.run([*command, "-lqpid-proton"], check=True)
    return built


def run(
    program: Path, broker: SecuredBroker, address: str, *, ca: str = "ca", shown: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the program with SHOP's password, or with the certificate `shown`."""
    where = urlsplit(broker.tls_url(listener="demanding" if shown else "asking"))
    files = [broker.file(f"{ca}.pem")]
    if shown:
        files += [broker.file(f"{shown}.pem"), broker.file(f"{shown}.key")]
    return subprocess.run(
        [str(program), str(where.hostname), str(where.port), address, *files],
        env=os.environ | {"BROKER_USER": SHOP, "BROKER_PASSWORD": SHOP_PASSWORD},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    "shown",
    [pytest.param("", id="a password"), pytest.param("shop", id="a certificate")],
)
def test_a_login_over_tls_sends_and_receives(
    program: Path, secured_broker: SecuredBroker, address: str, shown: str
) -> None:
    done = run(program, secured_broker, address, shown=shown)
    assert (done.stdout, done.returncode) == ("received a book\n", 0), done.stderr


@pytest.mark.parametrize(
    ("ca", "shown", "told"),
    [
        pytest.param("ca", "stranger", "amqp:unauthorized-access", id="no user's certificate"),
        pytest.param("ca", "foreign", "unknown ca", id="another authority's certificate"),
        pytest.param("other", "shop", "certificate verify failed", id="an untrusted broker"),
    ],
)
def test_a_client_is_refused_or_refuses(
    program: Path, secured_broker: SecuredBroker, *, ca: str, shown: str, told: str
) -> None:
    done = run(program, secured_broker, "refused", ca=ca, shown=shown)
    assert done.returncode == 1
    assert told in done.stderr


def test_a_certificate_has_the_rights_of_its_user(
    program: Path, secured_broker: SecuredBroker
) -> None:
    done = run(program, secured_broker, "closed.orders", shown="shop")
    assert "amqp:unauthorized-access" in done.stderr
    assert done.returncode == 1
