"""The container image: the text of the Dockerfile, and the image built from it.

Building and running the image takes root. Checks without root read the Dockerfile's text, or start
a broker with the image's settings. What the built image proves, and what it does not unless
IMAGE_MODULES=all: `container.py`.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from broker import __version__
from broker.settings import variable_names
from tests.interop import container
from tests.interop.broker_process import ROOT, BrokerProcess, command, environment
from tests.interop.composed import Composed
from tests.interop.conftest import not_available
from tests.interop.container import RUN_SECONDS, Image
from tests.interop.dockerfile import DOCKERFILE, DOCKERIGNORE, Stage, read_stages

DATA = "/var/lib/jms-broker"
COMPILER_FILES = ("setup.cfg", "config/build_ext.py", "config/cold_paths.h", "config/mypyc.ini")
"""The files that decide how the broker is compiled."""
ARGUMENTS, (BUILD, FINAL) = read_stages(DOCKERFILE.read_text())
HEALTHCHECK = FINAL.words("HEALTHCHECK")
SETTINGS = {
    name: value for name, value in FINAL.environment.items() if name.startswith("JMS_BROKER_")
}


def ended(
    arguments: list[str], *, text: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run `arguments` as a process to its end."""
    return subprocess.run(
        arguments,
        input=text,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
        env=environment(**variables),
    )


def port_of(broker: BrokerProcess) -> str:
    return broker.url.rpartition(":")[2]


# ---- without root -----------------------------------------------------------------------------


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        not_available("hadolint is not installed: the Dockerfile is not linted")
    done = ended([str(hadolint), "--no-color", str(DOCKERFILE)])
    assert (done.returncode, done.stdout) == (0, "")


def test_both_stages_stand_on_the_one_base_that_may_be_chosen() -> None:
    assert ARGUMENTS == {"BASE": "python:3.13-slim-bookworm"}
    assert (BUILD.origin, FINAL.origin) == ("${BASE} AS build", "${BASE}")


def test_whatever_pip_installs_is_pinned_by_hash_or_was_built_here() -> None:
    steps = [step for text in BUILD.all("RUN") for step in text.split(";") if "/pip " in step]
    fetched = [step for step in steps if "--no-index" not in step and "./tree" not in step]
    assert len(steps) == 5
    assert len(fetched) == 2
    for step in fetched:
        assert "--require-hashes" in step, step
    (local,) = (step for step in steps if "./tree" in step)
    assert "--no-deps --no-build-isolation" in local


def test_what_every_command_needs_is_installed() -> None:
    """Each extra but those of Spark and of tests: `client`, `http`, `postgresql`."""
    wheels = [step for text in BUILD.all("RUN") for step in text.split(";") if " wheels" in step]
    made, installed = wheels
    for extra in ("http", "client", "postgresql"):
        assert f"-r requirements-{extra}.txt" in made
    assert installed.endswith(
        "--python /opt/jms-broker/bin/python install --no-deps --no-index wheels/*.whl"
    )


@pytest.mark.requirement("OPS-16")
def test_pyarrow_is_installed_only_if_asked_for() -> None:
    assert "ARROW=no" in BUILD.all("ARG")
    (step,) = [text for text in BUILD.all("RUN") if "requirements-arrow.txt" in text]
    assert "yes) set -- -r requirements-arrow.txt ;;" in step
    assert "requirements-arrow.txt" not in step.replace("yes) set -- -r requirements-arrow.txt", "")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = {name: " ".join(needed) for name, needed in extras["optional-dependencies"].items()}
    assert "pyarrow" not in needs["http"]
    assert "pyarrow" in needs["arrow"]


@pytest.mark.requirement("OPS-16")
def test_the_labels_say_what_the_image_is() -> None:
    labels = dict(each.split("=", 1) for each in shlex.split(FINAL.last("LABEL")))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "org.opencontainers.image"
    assert labels == {
        f"{prefix}.title": project["name"],
        f"{prefix}.description": project["description"],
        f"{prefix}.licenses": project["license"],
        f"{prefix}.version": "$VERSION",
        f"{prefix}.revision": "$REVISION",
        f"{prefix}.created": "$CREATED",
        f"{prefix}.base.name": "$BASE",
    }
    assert f"VERSION={__version__}" in FINAL.all("ARG")


def test_nothing_is_installed_in_the_final_stage_but_a_user() -> None:
    (run,) = FINAL.all("RUN")
    assert "apt-get" not in run
    assert "pip" not in run
    assert FINAL.all("COPY") == ["--from=build /opt/jms-broker /opt/jms-broker"]


def test_the_user_is_a_number_and_not_root() -> None:
    user, group = FINAL.last("USER").split(":")
    assert int(user) > 0
    assert int(group) > 0


def test_what_is_written_goes_into_the_volume() -> None:
    assert FINAL.all("VOLUME") == [DATA]
    assert FINAL.last("WORKDIR") == DATA
    assert Path(SETTINGS["JMS_BROKER_USERS_FILE"]).parent == Path(DATA)


def test_every_setting_of_the_image_is_one_of_the_broker() -> None:
    assert SETTINGS
    assert set(SETTINGS) <= variable_names()


def test_it_starts_and_is_asked_without_a_shell() -> None:
    assert FINAL.words("ENTRYPOINT") == ["jms-broker"]
    assert FINAL.words("CMD") == ["serve"]
    assert HEALTHCHECK == ["jms-broker", "healthcheck"]


def test_what_the_wheel_is_built_from_reaches_the_build_and_nothing_else_does() -> None:
    first, *rest = [line for line in DOCKERIGNORE.read_text().splitlines() if line[0] != "#"]
    assert first == "*"
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = targets["targets"]["wheel"]
    packages = wheel.get("only-include") or wheel["packages"]
    pins = [
        name for text in BUILD.all("RUN") for name in re.findall(r"requirements-\w+\.txt", text)
    ]
    assert BUILD.all("COPY")[0] == "requirements-*.txt ./"
    assert {line[1:] for line in rest if line.startswith("!")} == {
        *packages,
        *pins,
        *COMPILER_FILES,
        "pyproject.toml",
        "LICENSE",
        "README.md",
    }


@pytest.mark.parametrize(
    "name",
    [
        "Dockerfile",
        "requirements-http.txt",
        "requirements-client.txt",
        "requirements-postgresql.txt",
        "requirements-oauth.txt",
        "requirements-otel.txt",
        "broker/app.py",
        "jms_broker.py",
        "pyspark_amqp/jobs/archive.py",
        "config/build_ext.py",
    ],
)
def test_an_image_is_built_anew_when_what_it_is_made_of_changes(name: str, tmp_path: Path) -> None:
    shutil.copy(DOCKERIGNORE, tmp_path)
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("as it was")
    before = container.digest(tmp_path)
    file.write_text("changed")
    assert container.digest(tmp_path) != before


@pytest.mark.parametrize("name", ["broker/app.so", "tests/unit/test_app.py", "Makefile"])
def test_an_image_is_kept_when_something_else_changes(name: str, tmp_path: Path) -> None:
    shutil.copy(DOCKERIGNORE, tmp_path)
    before = container.digest(tmp_path)
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("new")
    assert container.digest(tmp_path) == before


@pytest.mark.parametrize("all_modules", [False, True], ids=["few modules", "all modules"])
def test_an_image_is_built_from_the_checkout_but_compiles_what_it_is_told(
    tmp_path: Path, all_modules: bool
) -> None:
    container.copy_context(tmp_path, all_modules=all_modules)
    names = [file.relative_to(ROOT) for file in container.context_files(ROOT)]
    copied = [file.relative_to(tmp_path) for file in container.context_files(tmp_path)]
    assert copied == names
    assert len(names) > 300
    changed = [
        str(name) for name in names if (tmp_path / name).read_bytes() != (ROOT / name).read_bytes()
    ]
    assert changed == ([] if all_modules else ["pyproject.toml"])
    before, after = (
        tomllib.loads((folder / "pyproject.toml").read_text()) for folder in (ROOT, tmp_path)
    )
    of_a_user = container.compiled_by(before)["include"]
    compiled = of_a_user if all_modules else list(container.FEW_MODULES)
    assert container.compiled_by(after).pop("include") == compiled
    assert all(name.startswith(tuple(of_a_user)) for name in compiled)
    del container.compiled_by(before)["include"]
    assert after == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("FROM a AS b\nUSER 1", [("a AS b", [("USER", "1")])], id="one stage"),
        pytest.param("FROM a\nfrom b", [("a", []), ("b", [])], id="two stages, any case"),
        pytest.param(
            "FROM a\nRUN b \\\n  # why\n    && c", [("a", [("RUN", "b && c")])], id="a long line"
        ),
    ],
)
def test_a_dockerfile_is_read(text: str, expected: list[tuple[str, list[tuple[str, str]]]]) -> None:
    assert [(stage.origin, stage.instructions) for stage in read_stages(text)[1]] == expected


def test_the_last_instruction_of_a_kind_counts() -> None:
    stage = Stage("a")
    stage.instructions.extend([("CMD", '["a"]'), ("ENV", "A=1 B='2 3'"), ("CMD", '["b", "c"]')])
    assert stage.words("CMD") == ["b", "c"]
    assert stage.environment == {"A": "1", "B": "2 3"}


def image_settings(folder: Path) -> dict[str, str]:
    """Return the image's settings, with `folder` for its volume, and a free port."""
    moved = {name: value.replace(DATA, str(folder)) for name, value in SETTINGS.items()}
    return moved | {"JMS_BROKER_PORT": "0"}


def test_with_the_images_settings_and_no_user_it_does_not_start(tmp_path: Path) -> None:
    done = ended([*command(), *FINAL.words("CMD")], **image_settings(tmp_path))
    assert done.returncode == 2
    assert "JMS_BROKER_USER" in done.stderr


def test_with_the_images_settings_and_a_user_it_is_healthy(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("sesame\n")
    first = {"JMS_BROKER_USER": "alice", "JMS_BROKER_PASSWORD_FILE": str(password)}
    settings = image_settings(tmp_path) | first
    check = [*command(), *HEALTHCHECK[1:]]
    broker = BrokerProcess(tmp_path, variables=settings, program=[*command(), *FINAL.words("CMD")])
    there = {**settings, "JMS_BROKER_PORT": port_of(broker)}
    try:
        healthy = ended(check, **there)
    finally:
        assert broker.stop() == 0
    assert (healthy.returncode, healthy.stderr) == (0, "")
    assert ended(check, **there).returncode == 1


# ---- as root ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(pytestconfig: pytest.Config) -> Iterator[Image]:
    """Yield the image, built from this checkout."""
    container.require_tools()
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def tell(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\nimage: {line}", flush=True)

    with container.built(tell) as image:
        yield image


@pytest.fixture
def data(image: Image, tmp_path: Path) -> Path:
    """Return a new volume for the image's data."""
    return image.volume(tmp_path)


privileged = [pytest.mark.privileged, pytest.mark.slow]


class TestBuilt:
    """The built image, and containers of it with a read-only root."""

    pytestmark = privileged

    def test_its_configuration_is_what_the_dockerfile_says(self, image: Image) -> None:
        seconds = 1_000_000_000
        assert image.config["Healthcheck"] == {
            "Test": ["CMD", "jms-broker", "healthcheck"],
            "Interval": 30 * seconds,
            "Timeout": 10 * seconds,
            "StartPeriod": 10 * seconds,
            "Retries": 3,
        }
        assert image.config["User"] == "10001:10001"
        assert image.config["Volumes"] == {DATA: {}}
        assert image.config["WorkingDir"] == DATA
        assert image.config["ExposedPorts"] == {
            f"{port}/tcp": {} for port in (5671, 5672, 5673, 5674, 8161)
        }
        assert image.texts("Entrypoint") == ["jms-broker"]
        assert image.texts("Cmd") == ["serve"]

    def test_it_is_compiled_and_carries_no_tools(self, image: Image) -> None:
        modules = [
            file for file in image.packages.glob("broker/**/*.so") if "__mypyc" not in file.name
        ]
        assert {file.name.partition(".")[0] for file in modules} >= {"connection", "message"}
        assert len(modules) > 200 if container.ALL_MODULES else len(modules) == 2
        assert not [*image.packages.glob("pip"), *image.packages.glob("pip-*")]
        assert not (image.root / "build").exists()
        assert not (image.root / "usr/bin/gcc").exists()

    def test_its_library_is_made_with_the_compiler_flags(self, image: Image) -> None:
        """It exports only Python's entry points: calls within the library are direct."""
        (library,) = image.packages.glob("*__mypyc*.so")
        symbols = ["nm", "--dynamic", "--defined-only", "--format=just-symbols", str(library)]
        shown = subprocess.run(symbols, capture_output=True, text=True, check=True).stdout.split()
        assert [name.startswith("PyInit_") for name in shown] == [True]

    def test_nothing_of_the_machine_that_built_it_is_left(self, image: Image) -> None:
        assert not (image.root / "etc/pip.conf").exists()
        assert not list((image.root / "mnt").iterdir())

    def test_its_user_owns_the_volume_and_nothing_else(self, image: Image, data: Path) -> None:
        tried = ["/opt/jms-broker/x", "/tmp/x", f"{DATA}/x"]
        done = ended(image.enter(data, "/bin/sh", "-c", f"touch {' '.join(tried)}; id -u; pwd"))
        assert done.stdout.split() == ["10001", DATA]
        assert [path for path in tried if f"'{path}'" in done.stderr] == tried[:2]
        assert (data / "x").exists()

    def test_without_users_it_says_what_to_do(self, image: Image, data: Path) -> None:
        done = ended(image.run(data))
        assert done.returncode == 2
        assert "JMS_BROKER_USER" in done.stderr

    def test_the_images_client_speaks_to_the_running_broker(self, image: Image, data: Path) -> None:
        broker = started(image, data, password="sesame")
        url = f"amqp://alice:sesame@127.0.0.1:{port_of(broker)}"
        check = image.enter(data, *HEALTHCHECK, JMS_BROKER_PORT=port_of(broker))
        client = partial(image.enter, data, "jms-broker")
        try:
            sent = ended(client("send", "hello", "world", "--url", url))
            received = ended(client("receive", "hello", "--count", "1", "--url", url))
            stranger = ended(client("send", "hello", "x", "--url", url.replace("sesame", "")))
            healthy = ended(check)
        finally:
            assert broker.stop() == 0
        assert (sent.stdout, received.stdout) == ("sent 1\n", "world\n"), sent.stderr
        assert stranger.returncode == 4
        assert healthy.returncode == 0, healthy.stderr
        assert ended(check).returncode == 1

    def test_with_the_settings_of_compose_it_serves_each_port(
        self, image: Image, data: Path, record_testsuite_property: Callable[[str, object], None]
    ) -> None:
        """Check it, and record how long the container takes from its start to the last answer."""
        secrets = data.with_name("secrets")
        secrets.mkdir()
        composed = Composed(secrets, "/mnt")
        begun = time.perf_counter()
        program = image.run(data, **composed.variables, JMS_BROKER_PORT="0")
        broker = BrokerProcess(data.parent, program=program)
        try:
            composed.check(broker)
            record_testsuite_property("served_ms", round((time.perf_counter() - begun) * 1000))
        finally:
            broker.stop()

    def test_users_are_kept_in_the_volume(self, image: Image, data: Path) -> None:
        added = ended(image.run(data, "user", "add", "bob", "--password-stdin"), text="sesame\n")
        told = (added.returncode, added.stdout.splitlines()[0])
        assert told == (0, "added bob to /var/lib/jms-broker/users"), added.stderr
        broker = started(image, data)
        url = f"amqp://bob:sesame@127.0.0.1:{port_of(broker)}"
        try:
            sent = ended(image.enter(data, "jms-broker", "send", "hello", "world", "--url", url))
        finally:
            assert broker.stop() == 0
        assert sent.stdout == "sent 1\n", sent.stderr


def started(image: Image, data: Path, *, password: str = "") -> BrokerProcess:
    """Start a broker in a container, on a free port; with `password` it has a first user, alice."""
    first = {}
    if password:
        secrets = data.with_name("secrets")
        secrets.mkdir()
        (secrets / "password").write_text(password)
        first = {"JMS_BROKER_USER": "alice", "JMS_BROKER_PASSWORD_FILE": "/mnt/password"}
    program = image.run(data, JMS_BROKER_PORT="0", **first)
    return BrokerProcess(data.parent, program=program)
