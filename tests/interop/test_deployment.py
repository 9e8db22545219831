"""The files with which the broker is installed: each tool that is here finds them valid, and what
they name exists in the broker.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from broker.cli.application import application
from broker.drain_settings import DrainSettings
from broker.settings import OTHER_VARIABLES, SECRETS, load_settings, variable_names
from tests.interop import deployment
from tests.interop.broker_process import ROOT, BrokerProcess, command, environment
from tests.interop.composed import Composed
from tests.interop.deployment import CHART, COMPOSE, FILES, KUBERNETES, UNIT
from tests.interop.dockerfile import DOCKERFILE, read_stages

pytestmark = pytest.mark.requirement("OPS-16")

STOP_S: Final = 10
"""Maximum number of seconds for a stop after the drain."""
RUN_SECONDS: Final = 60
EXPOSED: Final = {
    int(port) for port in read_stages(DOCKERFILE.read_text())[1][-1].last("EXPOSE").split()
}
SETTINGS_FILES: Final = [COMPOSE / "broker.toml", KUBERNETES / "broker.toml"]


def names(file: Path) -> str:
    return str(file.relative_to(ROOT / "config"))


def ran(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
        env=environment(**variables),
    )


def tool(name: str) -> str:
    """Return the path of a tool, or skip the test."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: what it checks is not checked")
    return found


# -- what the files name


@pytest.mark.parametrize("file", FILES, ids=names)
def test_every_variable_is_a_setting(file: Path) -> None:
    known = variable_names() | OTHER_VARIABLES | {f"{name}_FILE" for name in SECRETS}
    # the image is a variable of the compose file alone
    named = set(deployment.VARIABLE.findall(file.read_text())) - {"JMS_BROKER_IMAGE"}
    assert named <= known


@pytest.mark.parametrize("file", FILES, ids=names)
def test_every_command_is_one_of_the_broker(file: Path) -> None:
    for words in deployment.commands(file):
        check(words)


def check(words: list[str]) -> None:
    """Fail unless `words` are a command of `jms-broker` with options that it has."""
    found: Any = typer.main.get_command(application)
    rest = list(words)
    while hasattr(found, "commands"):  # a group, which typer has as a class of its own
        name = rest.pop(0)
        assert name in found.commands, words
        found = found.commands[name]
    known = {option for each in found.params for option in each.opts}
    assert {word for word in rest if word.startswith("--")} <= known, words


def test_the_commands_of_the_files_are_found() -> None:
    """Without it, a change of the files could leave the test above with nothing to check."""
    found = {words[0] for file in FILES for words in deployment.commands(file)}
    assert found == {"drain", "healthcheck", "serve"}


def test_every_port_is_one_of_the_settings_and_of_the_image() -> None:
    settings = [load_settings(file) for file in SETTINGS_FILES]
    for each in settings:
        ports = {listener.port for listener in each.listeners()} | {each.http.port}
        assert ports == {5671, 5672, 5674, 8161}
        assert ports <= EXPOSED
    public = {5671, 5674, 8161}
    compose = {int(port.partition(":")[2]) for port in deployment.compose()["ports"]}
    service = {each["port"] for each in deployment.manifest("service.yaml")["spec"]["ports"]}
    container = {each["containerPort"] for each in deployment.container()["ports"]}
    policy = deployment.manifest("networkpolicy.yaml")["spec"]["ingress"]
    allowed = {each["port"] for rule in policy for each in rule["ports"]}
    assert compose == service == container == allowed == public


def test_all_ways_have_the_same_settings() -> None:
    first, *others = [tomllib.loads(file.read_text()) for file in SETTINGS_FILES]
    (values,) = deployment.documents((CHART / "values.yaml").read_text())
    assert [*others, tomllib.loads(values["settings"])] == [first, first]


def test_whatever_stops_the_broker_waits_for_its_drain() -> None:
    drain = DrainSettings()
    least = (drain.announce_ms + drain.timeout_ms) // 1000 + STOP_S
    pod = deployment.manifest("statefulset.yaml")["spec"]["template"]["spec"]
    (values,) = deployment.documents((CHART / "values.yaml").read_text())
    stops = [int(value) for _, name, value in deployment.unit() if name == "TimeoutStopSec"]
    assert (
        min(
            *stops,
            int(deployment.compose()["stop_grace_period"].removesuffix("s")),
            pod["terminationGracePeriodSeconds"],
            values["terminationGracePeriodSeconds"],
        )
        >= least
    )
    assert ("Service", "Environment", "JMS_BROKER_DRAIN_ON_SIGTERM=true") in deployment.unit()
    assert all(load_settings(file).drain.on_sigterm for file in SETTINGS_FILES)


# -- systemd


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze")
    here = tmp_path / UNIT.name
    # the program is not installed here
    here.write_text(
        UNIT.read_text().replace("/opt/jms-broker/bin/jms-broker", shutil.which("true") or "")
    )
    done = ran(analyze, "verify", str(here))
    assert (done.returncode, done.stderr) == (0, "")
    rated = ran(analyze, "security", "--offline=true", "--threshold=20", "--no-pager", str(here))
    assert rated.returncode == 0, rated.stdout


def test_the_unit_waits_for_the_broker_and_takes_its_rights() -> None:
    service = [(name, value) for section, name, value in deployment.unit() if section == "Service"]
    wanted = {
        "Type": "notify",
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "PrivateTmp": "yes",
        "StateDirectory": "jms-broker",
        "LimitNOFILE": "65536",
        "CapabilityBoundingSet": "",
    }
    assert wanted.items() <= dict(service).items()
    assert ("SystemCallFilter", "@system-service") in service


# -- compose


def test_compose_keeps_the_container_small() -> None:
    service = deployment.compose()
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    health = read_stages(DOCKERFILE.read_text())[1][-1].words("HEALTHCHECK")
    assert service["healthcheck"]["test"] == ["CMD", *health]


def test_docker_compose_accepts_the_file(tmp_path: Path) -> None:
    docker = tool("docker")
    if ran(docker, "compose", "version").returncode != 0:
        pytest.skip("docker has no plugin compose: the compose file is not checked by it")
    shutil.copytree(COMPOSE, tmp_path, dirs_exist_ok=True)
    (tmp_path / "password").write_text("sesame")
    done = ran(docker, "compose", "--file", str(tmp_path / "compose.yaml"), "config", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_broker_with_the_settings_of_compose_serves_each_port(tmp_path: Path) -> None:
    """Check it without the image; `test_image.py` does it with the image."""
    composed = Composed(tmp_path, str(tmp_path))
    broker = BrokerProcess(tmp_path, settings=composed.settings, variables=composed.variables)
    try:
        composed.check(broker)
    finally:
        broker.kill()


# -- Kubernetes


PROBES: Final = {
    "startupProbe": ("/startupz", 1, 120),
    "readinessProbe": ("/readyz", 2, 2),
    "livenessProbe": ("/livez", 10, 3),
}


def test_the_pod_is_probed_and_has_few_rights() -> None:
    spec = deployment.manifest("statefulset.yaml")["spec"]
    pod = spec["template"]["spec"]
    container = deployment.container()
    assert spec["replicas"] == 1
    assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    for name, (path, period_s, failures) in PROBES.items():
        probe = container[name]
        assert probe["httpGet"] == {"path": path, "port": "https", "scheme": "HTTPS"}
        assert (probe["periodSeconds"], probe["failureThreshold"]) == (period_s, failures)


def test_every_volume_of_the_container_is_there_and_where_the_settings_look() -> None:
    spec = deployment.manifest("statefulset.yaml")["spec"]
    volumes = {each["name"] for each in spec["template"]["spec"]["volumes"]}
    volumes |= {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    mounts = {each["name"]: each["mountPath"] for each in deployment.container()["volumeMounts"]}
    assert set(mounts) == volumes
    settings = load_settings(KUBERNETES / "broker.toml")
    assert settings.tls is not None
    assert str(settings.tls.certificate.parent) == mounts["tls"]
    files = {each["name"]: each["value"] for each in deployment.container()["env"]}
    assert str(Path(files["JMS_BROKER_CONFIG"]).parent) == mounts["settings"]
    assert str(Path(files["JMS_BROKER_PASSWORD_FILE"]).parent) == mounts["password"]


def test_the_hook_before_the_stop_announces_the_drain(tmp_path: Path) -> None:
    """The command of the pod, as the kubelet runs it."""
    pytest.importorskip("proton", reason="python-qpid-proton is not installed")
    password = tmp_path / "password"
    password.write_text("a 'long' $password\n")
    user = {"JMS_BROKER_USER": "admin", "JMS_BROKER_PASSWORD_FILE": str(password)}
    program = tmp_path / "jms-broker"
    program.write_text(f'#!/bin/sh\nexec {" ".join(command())} "$@"\n')
    program.chmod(0o755)
    settings = "[drain]\nannounce_ms = 1\n"
    broker = BrokerProcess(tmp_path, settings=settings, variables=user)
    try:
        hook = deployment.container()["lifecycle"]["preStop"]["exec"]["command"]
        here = f"{tmp_path}:{os.environ['PATH']}"
        done = ran(*hook, **user, PATH=here, JMS_BROKER_URL=broker.url)
        assert (done.returncode, done.stderr) == (0, "")
        assert "broker draining: it accepts no connections" in broker.log.read_text()
    finally:
        assert broker.stop() == 0


def test_kustomize_builds_the_manifests() -> None:
    done = ran(tool("kubectl"), "kustomize", str(KUBERNETES))
    assert done.returncode == 0, done.stderr
    kinds = sorted(each["kind"] for each in deployment.documents(done.stdout))
    assert kinds == [
        *("ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount"),
        "StatefulSet",
    ]


def test_kubeconform_accepts_the_manifests() -> None:
    program, schemas = tool("kubeconform"), os.environ.get("KUBERNETES_SCHEMAS")
    if schemas is None:
        pytest.skip("KUBERNETES_SCHEMAS names no folder of JSON schemas: kubeconform is not run")
    files = sorted(str(each) for each in KUBERNETES.glob("*.yaml"))
    done = ran(program, "-strict", "-schema-location", schemas, "-skip", SKIPPED, *files)
    assert done.returncode == 0, done.stdout + done.stderr


SKIPPED: Final = "ServiceMonitor,Kustomization"
"""Kinds that are not Kubernetes's own."""


# -- the chart


def test_every_file_of_yaml_is_readable() -> None:
    for file in FILES:
        if file.suffix == ".yaml" and file.parent.name != "templates":
            assert deployment.documents(file.read_text()), file


def test_the_chart_has_the_version_of_the_broker() -> None:
    from broker import __version__

    (chart,) = deployment.documents((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__
    images = [deployment.container()["image"]]
    assert [image.partition(":")[2] for image in images] == [__version__]


AS_NEW: Final = ("--kube-version", "1.32.0")
"""A helm that was built by `go install` takes the cluster for an old one."""


def rendered(*options: str) -> Mapping[str, dict[str, Any]]:
    """Return what the chart makes, by kind."""
    done = ran(tool("helm"), "template", "jms-broker", str(CHART), *AS_NEW, *options)
    assert done.returncode == 0, done.stderr
    return {each["kind"]: each for each in deployment.documents(done.stdout)}


@pytest.fixture
def further(tmp_path: Path) -> Path:
    """Return values that turn everything on."""
    values = tmp_path / "values.yaml"
    values.write_text(
        json.dumps(
            {
                "serviceMonitor": {"enabled": True},
                "furtherSettings": {"10-credit.toml": "credit = 100\n"},
                "extraEnv": [{"name": "JMS_BROKER_CREDIT", "value": "7"}],
                "storage": {"className": "fast"},
                "podAnnotations": {"a": "b"},
                "nodeSelector": {"disk": "ssd"},
            }
        )
    )
    return values


def test_helm_accepts_the_chart(further: Path) -> None:
    for options in ([], ["--values", str(further)]):
        done = ran(tool("helm"), "lint", "--strict", str(CHART), *options)
        assert done.returncode == 0, done.stdout


def test_the_chart_makes_what_the_manifests_say() -> None:
    made = rendered()
    pod = made["StatefulSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ours = deployment.container()
    assert container | {"imagePullPolicy": None} == ours | {"imagePullPolicy": None}
    for kind, file in (
        ("NetworkPolicy", "networkpolicy"),
        ("PodDisruptionBudget", "poddisruptionbudget"),
    ):
        wanted, found = deployment.manifest(f"{file}.yaml")["spec"], made[kind]["spec"]
        for name in set(wanted) - {"podSelector", "selector"}:
            assert found[name] == wanted[name], (kind, name)
    manifest = deployment.manifest("statefulset.yaml")["spec"]
    for name in ("securityContext", "automountServiceAccountToken", "enableServiceLinks"):
        assert pod[name] == manifest["template"]["spec"][name]
    text = made["ConfigMap"]["data"]["broker.toml"]
    assert tomllib.loads(text) == tomllib.loads(SETTINGS_FILES[0].read_text())


def test_the_chart_passes_values_on(further: Path) -> None:
    made = rendered("--values", str(further))
    pod = made["StatefulSet"]["spec"]["template"]["spec"]
    (settings,) = [each for each in pod["volumes"] if each["name"] == "settings"]
    assert settings["configMap"]["items"][1] == {
        "key": "10-credit.toml",
        "path": "conf.d/10-credit.toml",
    }
    assert tomllib.loads(made["ConfigMap"]["data"]["10-credit.toml"]) == {"credit": 100}
    assert {"name": "JMS_BROKER_CREDIT", "value": "7"} in pod["containers"][0]["env"]
    assert made["ServiceMonitor"]["spec"] == deployment.manifest("servicemonitor.yaml")["spec"] | {
        "selector": made["ServiceMonitor"]["spec"]["selector"]
    }
    assert pod["nodeSelector"] == {"disk": "ssd"}
