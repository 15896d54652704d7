"""The Helm chart: what it renders, held against the schemas of Kubernetes, and a real server that
is started with that and asked by its probes. `make test-helm` brings Helm and the schemas."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from contextengine_server.api.pipeline.auth import hash_token
from tests.acceptance.shell import COMMAND, PATIENCE_S, ROOT, Shell
from tests.integration.api_infra.certifying import Authority
from tests.soak.killing import free_port

HELM = ROOT / ".tools" / "bin" / "helm"
VALIDATE = ROOT / ".tools" / "kubernetes" / "bin" / "kubernetes-validate"
CHART = ROOT / "deploy" / "helm" / "contextengine"
PLAIN = ("default", "mesh", "production")
OLDEST = yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"].strip(">=").split("-")[0]
KUBERNETES = (OLDEST, "1.37.0")
"""The oldest that the chart says it is for, and the newest whose schemas are pinned."""

pytestmark = pytest.mark.skipif(
    not os.environ.get("CONTEXTENGINE_HELM"), reason="make test-helm runs these"
)


def helm(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HELM, *map(str, words)], capture_output=True, text=True, timeout=120, check=False
    )


def chosen(values: str) -> list[str]:
    return [] if values == "default" else ["-f", str(CHART / "ci" / f"{values}-values.yaml")]


def template(values: str, *sets: str, kubernetes: str = OLDEST) -> subprocess.CompletedProcess[str]:
    words = [word for one in sets for word in ("--set", one)]
    return helm(
        *("template", "ce", CHART, "--namespace", "agents", "--kube-version", kubernetes),
        *chosen(values),
        *words,
    )


def rendered(values: str, *sets: str) -> dict[str, Any]:
    """The objects by kind and name."""
    done = template(values, *sets)
    assert done.returncode == 0, done.stderr
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    objects = {f"{one['kind']}/{one['metadata']['name']}": one for one in found}
    assert len(objects) == len(found)
    return objects


def pod_of(workload: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = workload["spec"]["template"]
    return found


def server_of(objects: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pod of the servers, and its one container."""
    pod = pod_of(objects["Deployment/ce-contextengine"])
    [container] = pod["spec"]["containers"]
    return pod, container


@pytest.mark.parametrize("values", PLAIN)
def test_the_chart_is_clean(values: str) -> None:
    done = helm("lint", "--strict", "--kube-version", OLDEST, CHART, *chosen(values))
    assert done.returncode == 0, done.stdout + done.stderr
    # An older Kubernetes is told so.
    assert helm("template", CHART, *chosen(values), "--kube-version", "1.29").returncode != 0


@pytest.mark.parametrize("kubernetes", KUBERNETES)
@pytest.mark.parametrize("values", PLAIN)
def test_kubernetes_takes_every_object(values: str, kubernetes: str, tmp_path: Path) -> None:
    done = template(values, kubernetes=kubernetes)
    assert done.returncode == 0, done.stderr
    assert validated(done.stdout, kubernetes, tmp_path).returncode == 0


def test_the_schemas_refuse_what_kubernetes_would(tmp_path: Path) -> None:
    wrong = template("default").stdout.replace("maxSurge: 1", "maxSurge: 1\n      maxSruge: 1")
    assert "maxSruge" in wrong
    assert validated(wrong, OLDEST, tmp_path).returncode != 0


def validated(text: str, kubernetes: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "objects.yaml"
    file.write_text(text)
    return subprocess.run(
        [VALIDATE, "--strict", "-k", kubernetes, file],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("values", PLAIN)
def test_secrets_are_named_and_never_written(values: str) -> None:
    objects = rendered(values)
    assert not [name for name in objects if name.startswith("Secret/")]
    workloads = [one for one in objects.values() if one["kind"] in {"Deployment", "Job"}]
    for workload in workloads:
        for container in pod_of(workload)["spec"]["containers"]:
            for variable in container["env"]:
                name = variable["name"]
                if any(word in name for word in ("STORE__URL", "AUTH__TOKENS", "KEY", "TOKEN")):
                    file = name.endswith("KEY_FILE")
                    assert file or set(variable["valueFrom"]) == {"secretKeyRef"}, name
        names = {one["name"] for one in pod_of(workload)["spec"]["containers"][0]["env"]}
        assert "CONTEXTENGINE_STORE__URL" in names


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["settings.store.url=postgresql://a:b@c/d"], "store.secret"),
        (["settings.auth.tokens[0].tenant=acme"], "auth.tokens.secret"),
        (["settings.server.address=0.0.0.0:1"], "set port"),
        (["settings.server.tls.cert_file=x"], "set tls"),
        (["settings.server.insecure=true"], "set insecure"),
        (["settings.telemetry.metrics.prometheus.address=x:1"], "set metrics"),
        (["tls.enabled=false"], "TLS and credentials"),
        (["auth.tokens.secret.name="], "TLS and credentials"),
        (["insecure=true", "tls.enabled=false", "tls.clients.caSecretName=ca"], "tls.enabled"),
        (["tls.clients.caSecretName=ca"], "probeSecretName"),
        (["metrics.port=50051"], "metrics.port"),
        (["autoscaling.enabled=true", "autoscaling.maxReplicas=1"], "minReplicas"),
        (["replica=3"], "replica"),
        (["disruption.maxUnavailable=0"], "maxUnavailable"),
        (["store.url=postgresql://a:b@c/d"], "url"),
        (["termination.grace=10"], "grace"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_what_cannot_be_right_is_not_rendered(sets: list[str], said: str) -> None:
    done = template("default", *sets)
    assert done.returncode != 0
    assert said in done.stderr
    assert "a:b" not in done.stderr


@pytest.mark.parametrize("values", PLAIN)
def test_the_parts_find_each_other(values: str) -> None:
    objects = rendered(values)
    pod, container = server_of(objects)
    labels, ports = pod["metadata"]["labels"], {one["name"] for one in container["ports"]}
    migrate = pod_of(objects["Job/ce-contextengine-migrate"])
    selectors = [
        objects["Deployment/ce-contextengine"]["spec"]["selector"]["matchLabels"],
        objects["Service/ce-contextengine"]["spec"]["selector"],
        objects["Service/ce-contextengine-headless"]["spec"]["selector"],
        objects["PodDisruptionBudget/ce-contextengine"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy/ce-contextengine"]["spec"]["podSelector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector.items() <= labels.items()
        assert not selector.items() <= migrate["metadata"]["labels"].items()
    assert objects["Service/ce-contextengine-headless"]["spec"]["clusterIP"] == "None"
    for name in ("", "-headless"):
        for port in objects[f"Service/ce-contextengine{name}"]["spec"]["ports"]:
            assert port["targetPort"] in ports
    assert pod["spec"]["serviceAccountName"] == "ce-contextengine"
    assert not objects["ServiceAccount/ce-contextengine"]["automountServiceAccountToken"]
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in pod["spec"]["volumes"]}


@pytest.mark.parametrize("values", PLAIN)
def test_servers_are_replaced_and_drained_one_by_one(values: str) -> None:
    objects = rendered(values)
    deployment = objects["Deployment/ce-contextengine"]["spec"]
    autoscaler = objects.get("HorizontalPodAutoscaler/ce-contextengine")
    if autoscaler is not None:
        target = autoscaler["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) == ("Deployment", "ce-contextengine")
        assert "replicas" not in deployment  # else each upgrade would undo what the load asked for
        least = autoscaler["spec"]["minReplicas"]
    else:
        least = deployment["replicas"]
    budget = objects["PodDisruptionBudget/ce-contextengine"]["spec"]["maxUnavailable"]
    assert 1 <= budget < least  # a drain goes on, and somebody serves
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    pod, container = server_of(objects)
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["spec"]["terminationGracePeriodSeconds"] >= pause + 90  # docs/deploying.md


@pytest.mark.parametrize("values", PLAIN)
def test_nobody_reaches_the_servers_but_who_is_named(values: str) -> None:
    objects = rendered(values)
    policy = objects["NetworkPolicy/ce-contextengine"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert [rule for rule in policy["ingress"] if rule["ports"][0]["port"] == "grpc"]
    for rule in policy["ingress"]:
        assert rule["from"], "a rule without peers lets everybody in"
    assert all(rule["ports"] for rule in policy["egress"])
    assert 5432 in [port["port"] for rule in policy["egress"] for port in rule["ports"]]
    nobody = rendered(values, "networkPolicy.clients=null", "networkPolicy.monitoring=null")
    assert not nobody["NetworkPolicy/ce-contextengine"]["spec"]["ingress"]
    for workload in (
        objects["Deployment/ce-contextengine"],
        objects["Job/ce-contextengine-migrate"],
    ):
        pod = pod_of(workload)["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        [container] = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_schema_comes_before_the_servers(tmp_path: Path) -> None:
    objects = rendered("production")
    job = objects["Job/ce-contextengine-migrate"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    [migrate] = pod_of(job)["spec"]["containers"]
    assert migrate["image"] == server_of(objects)[1]["image"]
    # Nothing of the release is there before its first installation.
    assert "serviceAccountName" not in pod_of(job)["spec"]
    assert [one for one in pod_of(job)["spec"]["volumes"] if "configMap" in one] == []
    shell = Shell(tmp_path)
    found = variables(migrate, {"database/uri": str(tmp_path / "store.db")}, tmp_path)
    assert set(found) == {"CONTEXTENGINE_STORE__URL"}
    url = found["CONTEXTENGINE_STORE__URL"]
    shell.run(*migrate["args"], CONTEXTENGINE_STORE__URL=url)
    done = shell.run("migrate", "verify", CONTEXTENGINE_STORE__URL=url)
    assert "which this version wants" in done.text


def variables(container: dict[str, Any], secrets: dict[str, str], etc: Path) -> dict[str, str]:
    """What the kubelet makes of a container's environment, its files under `etc`."""
    found = {}
    for one in container["env"]:
        if "value" in one:
            found[one["name"]] = placed(one["value"], etc)
        else:
            key = one["valueFrom"]["secretKeyRef"]
            found[one["name"]] = secrets[f"{key['name']}/{key['key']}"]
    return found


def placed(text: str, etc: Path) -> str:
    return text.replace("/etc/contextengine", str(etc)).replace("0.0.0.0", "127.0.0.1")


@contextmanager
def started(objects: dict[str, Any], secrets: dict[str, str], folder: Path) -> Iterator[Shell]:
    """A server as its container would be started; a shell inside of that."""
    _, container = server_of(objects)
    (folder / "settings").mkdir()
    text = objects["ConfigMap/ce-contextengine"]["data"]["contextengine.yaml"]
    (folder / "settings" / "contextengine.yaml").write_text(text)
    # What the image sets, which comes before the file.
    image = {"CONTEXTENGINE_SERVER__ADDRESS": "0.0.0.0:50051"}
    environment = Shell(folder).environment() | image | variables(container, secrets, folder)
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [COMMAND, *(placed(word, folder) for word in container["args"])],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env=environment,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("ready on "), (folder / "server.log").read_text()
        yield Shell(folder)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        process.stdout.close()


def asked(shell: Shell, probe: dict[str, Any]) -> str:
    """What a probe is answered, by the way that it names."""
    if "exec" in probe:
        assert probe["exec"]["command"][0] == "contextengine"
        words = [placed(word, shell.directory) for word in probe["exec"]["command"][1:]]
    else:
        port, service = probe["grpc"]["port"], probe["grpc"].get("service", "")
        words = ["health", "--address", f"127.0.0.1:{port}", "--service", service]
    return shell.run(*words).text.strip()


def test_the_probes_find_the_server_behind_a_mesh(tmp_path: Path) -> None:
    port, metrics = free_port(), free_port()
    objects = rendered("mesh", f"port={port}", f"metrics.port={metrics}")
    _, container = server_of(objects)
    secrets = {"contextengine-store/url": str(tmp_path / "store.db")}
    with started(objects, secrets, tmp_path) as shell:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert asked(shell, container[probe]) == "SERVING"
    assert {one["containerPort"] for one in container["ports"]} == {port, metrics}
    assert container["readinessProbe"]["grpc"] == {"port": port}
    assert container["livenessProbe"]["grpc"]["service"]  # not the whole: see the template


def test_the_probes_find_the_server_over_tls_both_ways(tmp_path: Path) -> None:
    port, metrics = free_port(), free_port()
    objects = rendered("production", f"port={port}", f"metrics.port={metrics}")
    _, container = server_of(objects)
    authority = Authority()
    for folder, names in {"tls": ["contextengine.example"], "probe": ["probe"]}.items():
        (tmp_path / folder).mkdir()
        certificate, key = authority.certify(dns=names)
        (tmp_path / folder / "tls.crt").write_bytes(certificate)
        (tmp_path / folder / "tls.key").write_bytes(key)
    (tmp_path / "clients").mkdir()
    for folder in ("tls", "clients"):
        (tmp_path / folder / "ca.crt").write_bytes(authority.pem)
    secrets = {
        "database/uri": str(tmp_path / "store.db"),
        "callers/hashes.json": json.dumps([{"sha256": hash_token("x"), "tenant": "acme"}]),
        "models/openai": "a key",
        "archive/id": "a key",
        "archive/secret": "of the archive",
    }
    with started(objects, secrets, tmp_path) as shell:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert asked(shell, container[probe]) == "SERVING"
        # Neither another name nor nobody's certificate would have done.
        words = [placed(one, tmp_path) for one in container["livenessProbe"]["exec"]["command"][1:]]
        other = [word.replace("contextengine.example", "other.example") for word in words]
        nobody = [word for word in words if not word.startswith(("--cert", "--key"))]
        for wrong in (other, nobody):
            assert "does not answer" in shell.run(*wrong, status=1).err
        half = [word for word in words if not word.startswith("--key")]
        assert "--cert and --key belong together" in shell.run(*half, status=2).err
