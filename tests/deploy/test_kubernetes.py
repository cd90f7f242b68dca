"""The base for Kubernetes, as kustomize builds it: held to schemas and to us."""

import os
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from rankstream.redis_store.redis_access import USES
from rankstream.settings import (
    BanditSettings,
    Settings,
    SettingsError,
    load_settings,
)
from rankstream.wire.topics import full_name, worker_group
from streams.topology import STAGES, topics_of
from streams.worker_roles import ROLES
from tests.deploy.programs import CONFIG, DEPLOY, Program, brought
from tests.documented_blocks import blocks_of

BASE = DEPLOY / "kubernetes" / "base"
SETTINGS = BASE / "rankstream.toml"
SECRETS = "/etc/rankstream-secrets/"
NAME, COMPONENT = "app.kubernetes.io/name", "app.kubernetes.io/component"
WRITTEN = {"/tmp", "/var/cache/rankstream"}  # noqa: S108  of the container
OLDEST = "1.30"
"""The release of Kubernetes that manifests fit at least."""

Document = Any
"""What YAML holds."""


@dataclass(frozen=True)
class Pod:
    """What runs in the pods of a Deployment or of a Job."""

    name: str
    document: Document

    @property
    def template(self) -> Document:
        """Labels and specification of each pod."""
        return self.document["spec"]["template"]

    @property
    def spec(self) -> Document:
        """Of each pod."""
        return self.template["spec"]

    @property
    def container(self) -> Document:
        """The only one that it has."""
        (found,) = self.spec["containers"]
        return found

    def program(self) -> Program:
        """Its command, in a pod that Kubernetes has given a name."""
        of_pod = {"metadata.name": f"{self.name}-6d4cf56db6-x2x9p"}
        variables = {
            each["name"]: each.get("value")
            or of_pod[each["valueFrom"]["fieldRef"]["fieldPath"]]
            for each in self.container["env"]
        }
        assert variables.pop(CONFIG) == "/etc/rankstream/rankstream.toml"
        of_image = {"RANKSTREAM_METRICS__PORT": "9100"}
        return Program(self.container["args"], of_image | variables, SETTINGS)


def built(folder: Path) -> list[Document]:
    """All that kustomize makes of a folder."""
    done = subprocess.run(
        [brought("kubectl"), "kustomize", folder],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return list(yaml.safe_load_all(done.stdout))


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """Of the base."""
    return built(BASE)


@pytest.fixture(scope="module")
def pods(documents: list[Document]) -> dict[str, Pod]:
    """Of all Deployments and Jobs, by component."""
    found = {}
    for each in of_kind(documents, "Deployment", "Job"):
        component = each["spec"]["template"]["metadata"]["labels"][COMPONENT]
        assert component not in found
        found[component] = Pod(each["metadata"]["name"], each)
    return found


@pytest.fixture(scope="module")
def workers(pods: dict[str, Pod]) -> dict[str, Pod]:
    """By role."""
    return {
        name: pod for name, pod in pods.items() if "worker" in pod.container["args"]
    }


@pytest.fixture(scope="module")
def settings() -> Settings:
    """Of the base."""
    return load_settings(SETTINGS, {})


def of_kind(documents: list[Document], *kinds: str) -> Iterator[Document]:
    """Documents of some kinds."""
    return (each for each in documents if each["kind"] in kinds)


def selected(pods: dict[str, Pod], labels: dict[str, str]) -> set[str]:
    """Components whose pods have all of these labels."""
    return {
        name
        for name, pod in pods.items()
        if labels.items() <= pod.template["metadata"]["labels"].items()
    }


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_it_is_what_kubernetes_takes(documents: list[Document], version: str) -> None:
    """Nothing is unknown to its schemas either."""
    for each in documents:
        kubernetes_validate.validate(each, version, strict=True)
    wrong = documents[0] | {"datum": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_each_role_has_a_deployment(
    workers: dict[str, Pod], settings: Settings
) -> None:
    """Which starts where the settings have work for it, as in a worker of all roles."""
    assert workers.keys() == ROLES.keys()
    for name, role in ROLES.items():
        assert workers[name].name == f"rankstream-{name}"
        assert workers[name].program().roles() == [role]
        starts = workers[name].document["spec"]["replicas"] > 0
        assert starts is role.is_needed(settings)


def test_probes_ask_pages_that_are_there(pods: dict[str, Pod]) -> None:
    """Life of what lives whatever becomes of Kafka, readiness of what works."""
    assert pods.keys() == {*ROLES, "serve", "monitor", "topics"}
    for name in pods.keys() - {"topics"}:
        container = pods[name].container
        ((port, paths),) = pods[name].program().pages().items()
        (declared,) = container["ports"]
        assert declared["containerPort"] == port
        for probe in ("livenessProbe", "readinessProbe"):
            asked = container[probe]["httpGet"]
            assert asked["port"] == declared["name"]
            assert asked["path"] in paths
        live = container["livenessProbe"]["httpGet"]
        assert live["path"] != "/readyz"
        if name != "monitor":
            assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    (header,) = live_headers(pods["monitor"])
    assert header == {"name": "Host", "value": "localhost:8087"}


def live_headers(pod: Pod) -> Document:
    """What a probe sends along."""
    return pod.container["livenessProbe"]["httpGet"]["httpHeaders"]


def test_no_two_workers_have_one_instance(workers: dict[str, Pod]) -> None:
    """The name of the pod, which it keeps when its container starts again."""
    for pod in workers.values():
        told = pod.program().settings()
        assert told.delivery.instance_id.startswith(pod.name)
        assert told.metrics.host == "0.0.0.0"  # noqa: S104


def test_the_monitor_finds_the_page_of_each_role(
    documents: list[Document], pods: dict[str, Pod], settings: Settings
) -> None:
    """Under one name, at the port that it asks, by the name of the role's port."""
    services = {
        each["metadata"]["name"]: each for each in of_kind(documents, "Service")
    }
    service = services[pods["monitor"].program().settings().metrics.host]["spec"]
    assert selected(pods, service["selector"]) == ROLES.keys()
    found = {each["port"]: each["targetPort"] for each in service["ports"]}
    first = settings.metrics.port
    assert found == {first + role.metrics_port: name for name, role in ROLES.items()}
    for name in ROLES:
        assert [each["name"] for each in pods[name].container["ports"]] == [name]


def test_services_may_be_asked_by_their_names(
    documents: list[Document], pods: dict[str, Pod], settings: Settings
) -> None:
    """`serve` refuses other hosts."""
    services = {
        each["metadata"]["name"]: each for each in of_kind(documents, "Service")
    }
    (host,) = settings.serve.hosts
    assert selected(pods, services[host]["spec"]["selector"]) == {"serve"}
    (port,) = services[host]["spec"]["ports"]
    assert port["targetPort"] == pods["serve"].container["ports"][0]["name"]


def test_no_pod_has_rights(pods: dict[str, Pod]) -> None:
    """As the strictest of the Pod Security Standards asks, with a root that is read."""
    for pod in pods.values():
        of_pod, own = pod.spec["securityContext"], pod.container["securityContext"]
        assert of_pod["runAsNonRoot"]
        assert of_pod["runAsUser"] == of_pod["fsGroup"] == 10001
        assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert own == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod.spec["automountServiceAccountToken"] is False
        empty = {each["name"] for each in pod.spec["volumes"] if "emptyDir" in each}
        mounts = pod.container["volumeMounts"]
        places = {each["mountPath"] for each in mounts if each["name"] in empty}
        assert places == (WRITTEN if pod.program().command == "worker" else {"/tmp"})  # noqa: S108
        assert all(x["readOnly"] for x in mounts if x["mountPath"] not in places)


def test_variables_that_name_services_are_not_made(pods: dict[str, Pod]) -> None:
    """They would be settings that nobody knows, and no program would start."""
    assert all(pod.spec["enableServiceLinks"] is False for pod in pods.values())
    linked = {"RANKSTREAM_SERVE_SERVICE_HOST": "10.0.0.7"}
    with pytest.raises(SettingsError):
        load_settings(SETTINGS, linked)


def test_secrets_are_files(documents: list[Document], settings: Settings) -> None:
    """None is a variable, and none is in the base."""
    assert not [*of_kind(documents, "Secret")]
    named = [
        settings.kafka.password_file, settings.kafka.ca_file,
        settings.redis.password_file, settings.redis.ca_file,
        settings.serve.send_tokens_file, settings.serve.rank_tokens_file,
    ]  # fmt: skip
    assert all(each.startswith(SECRETS) for each in named)


def keys_of(pod: Pod) -> set[str]:
    """Keys of the Secret that are files in a pod."""
    (secret,) = (x["secret"] for x in pod.spec["volumes"] if "secret" in x)
    assert all(each["key"] == each["path"] for each in secret["items"])
    return {each["key"] for each in secret["items"]}


def test_pods_have_the_secrets_that_they_need(
    pods: dict[str, Pod], settings: Settings
) -> None:
    """Who only folds cannot send events in the name of a shop."""
    tokens = {settings.serve.send_tokens_file, settings.serve.rank_tokens_file}
    for name, pod in pods.items():
        needed = {settings.kafka.password_file, settings.kafka.ca_file}
        if name in USES:
            needed.add(settings.redis.password_file)
        if name == "serve":
            needed |= tokens
        assert keys_of(pod) == {each.removeprefix(SECRETS) for each in needed}


def test_pods_may_take_their_time_and_the_memory_that_settings_give(
    pods: dict[str, Pod], settings: Settings
) -> None:
    """To stop, and beside what a process needs itself."""
    for pod in pods.values():
        resources = pod.container["resources"]
        assert resources["requests"].keys() == {"cpu", "memory"}
        # What waits for a core misses heartbeats.
        assert resources["limits"].keys() == {"memory"}
        if pod.document["kind"] == "Deployment":
            seconds = pod.spec["terminationGracePeriodSeconds"]
            assert seconds > settings.delivery.stop_s
    of_train = settings.train.memory_mb
    assert mebibytes(pods["train"]) >= of_train + 512
    of_decide = BanditSettings(model="search").memory_mb
    assert mebibytes(pods["decide"]) >= of_decide + 512


def mebibytes(pod: Pod) -> int:
    """The limit on memory."""
    limit = pod.container["resources"]["limits"]["memory"]
    return int(limit[:-2]) * {"Mi": 1, "Gi": 1024}[limit[-2:]]


def test_pods_of_a_name_are_apart_and_leave_one_at_a_time(
    documents: list[Document], pods: dict[str, Pod]
) -> None:
    """A role's own, and of no other."""
    budgets = {
        name
        for each in of_kind(documents, "PodDisruptionBudget")
        for name in [*selected(pods, each["spec"]["selector"]["matchLabels"])]
        if each["spec"]["maxUnavailable"] == 1
    }
    assert budgets == pods.keys() - {"topics"}
    for each in of_kind(documents, "Deployment"):
        (name,) = selected(pods, each["spec"]["selector"]["matchLabels"])
        spread = pods[name].spec["topologySpreadConstraints"]
        for one in spread:
            assert selected(pods, one["labelSelector"]["matchLabels"]) == {name}
        # Two at once are fenced; so what comes is ready before what goes is stopped.
        rolling = {"maxSurge": 1, "maxUnavailable": 0}
        assert each["spec"]["strategy"]["rollingUpdate"] == rolling


def test_nobody_reaches_what_is_not_said(
    documents: list[Document], pods: dict[str, Pod], settings: Settings
) -> None:
    """And Kafka, Redis, names and pages can be asked."""
    policies = {
        each["metadata"]["name"]: each["spec"]
        for each in of_kind(documents, "NetworkPolicy")
    }
    whole = policies["rankstream"]
    assert selected(pods, whole["podSelector"]["matchLabels"]) == pods.keys()
    assert "ingress" not in whole
    assert whole["policyTypes"] == ["Ingress", "Egress"]
    left = {port["port"] for rule in whole["egress"] for port in rule["ports"]}
    kafka = int(settings.kafka.bootstrap.rpartition(":")[2])
    assert {53, kafka, urlsplit(settings.redis.url).port} <= left
    pages = policies["rankstream-pages"]
    assert selected(pods, pages["podSelector"]["matchLabels"]) == ROLES.keys()
    (rule,) = pages["ingress"]
    (ports,) = rule["ports"]
    first = settings.metrics.port
    assert (ports["port"], ports["endPort"]) == (first, first + len(ROLES) - 1)
    (rule,) = policies["rankstream-monitor"]["egress"]
    (to,) = rule["to"]
    assert selected(pods, to["podSelector"]["matchLabels"]) == ROLES.keys()
    assert rule["ports"] == [ports]


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> list[Document]:
    """The base with the component that scales."""
    folder = tmp_path_factory.mktemp("overlay")
    paths = [os.path.relpath(path, folder) for path in (BASE, BASE.parent / "keda")]
    overlay = {"resources": paths[:1], "components": paths[1:]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    return built(folder)


def test_workers_are_scaled_by_the_lag_of_their_group(
    scaled: list[Document], settings: Settings
) -> None:
    """Each by all that it reads, up to one for each partition, and by nobody else."""
    deployments = {
        each["metadata"]["name"]: each for each in of_kind(scaled, "Deployment")
    }
    partitions = {each.name: each.partitions for each in topics_of(settings.kafka)}
    found = set()
    for each in of_kind(scaled, "ScaledObject"):
        spec = each["spec"]
        target = spec["scaleTargetRef"]["name"]
        role = target.removeprefix("rankstream-")
        found.add(role)
        assert "replicas" not in deployments[target]["spec"]
        sources = [kind.source for kind in STAGES if kind.role == role]
        read = [trigger["metadata"] for trigger in spec["triggers"]]
        topics = [full_name(settings.namespace, source) for source in sources]
        assert [one["topic"] for one in read] == topics
        for one in read:
            assert one["consumerGroup"] == worker_group(settings.namespace, role)
            assert one["bootstrapServers"] == settings.kafka.bootstrap
        most = min(partitions[source] for source in sources)
        assert 0 < spec["minReplicaCount"] <= spec["maxReplicaCount"] <= most
    assert found == {kind.role for kind in STAGES}


def test_who_scales_has_the_secrets_of_the_others(scaled: list[Document]) -> None:
    """Of the same object."""
    (access,) = of_kind(scaled, "TriggerAuthentication")
    used = {
        trigger["authenticationRef"]["name"]
        for each in of_kind(scaled, "ScaledObject")
        for trigger in each["spec"]["triggers"]
    }
    assert used == {access["metadata"]["name"]}
    wanted = access["spec"]["secretTargetRef"]
    mounted = {
        volume["secret"]["secretName"]
        for each in of_kind(scaled, "Deployment")
        for volume in each["spec"]["template"]["spec"]["volumes"]
        if "secret" in volume
    }
    assert {each["name"] for each in wanted} == mounted


PAGE = "docs/how-to/kubernetes.md"


@pytest.fixture(scope="module")
def of_page(tmp_path_factory: pytest.TempPathFactory) -> list[Document]:
    """What a reader of the page has, with the component that it names at the end."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copy(SETTINGS, folder)
    with (folder / SETTINGS.name).open("a") as file:
        file.write("# changed\n")
    texts = [textwrap.dedent(block.text) for block in blocks_of(PAGE)]
    parts = ("resources:", "components:", "patches:")
    wanted = [text for text in texts if text.startswith(parts)]
    assert len(wanted) == len(parts)
    tree = os.path.relpath(DEPLOY.parent, folder)
    overlay = "".join(wanted).replace("../rankstream", tree)
    (folder / "kustomization.yaml").write_text(overlay)
    return built(folder)


def test_the_overlay_of_the_page_builds(of_page: list[Document]) -> None:
    """With the reader's settings, image, namespace and number of pods."""
    for each in of_kind(of_page, "Deployment", "Job"):
        pod = Pod(each["metadata"]["name"], each)
        assert each["metadata"]["namespace"] == "search"
        assert pod.container["image"] == "registry.example/rankstream:1"
        if pod.name == "rankstream-fold":
            assert each["spec"]["replicas"] == 4
            program = pod.program()
            assert program.settings().kafka.username == "shop-fold"
            secret = next(x["secret"] for x in pod.spec["volumes"] if "secret" in x)
            assert secret["secretName"] == "rankstream-fold"
            assert keys_of(pod) == {"ca.pem", "kafka-password"}
    (changed,) = of_kind(of_page, "ConfigMap")
    assert changed["data"][SETTINGS.name].endswith("# changed\n")
    used = {
        volume["configMap"]["name"]
        for each in of_kind(of_page, "Deployment", "Job")
        for volume in each["spec"]["template"]["spec"]["volumes"]
        if "configMap" in volume
    }
    assert used == {changed["metadata"]["name"]}


def test_the_secret_of_the_page_has_every_file(scaled: list[Document]) -> None:
    """That settings name, and what whoever scales reads beside."""
    text = (DEPLOY.parent / PAGE).read_text(encoding="utf-8")
    made = {*re.findall(r"--from-file=(\S+)", text)}
    named = {*re.findall(f'"{SECRETS}(.+)"', SETTINGS.read_text(encoding="utf-8"))}
    assert made == named
    (access,) = of_kind(scaled, "TriggerAuthentication")
    keys = {each["key"] for each in access["spec"]["secretTargetRef"]}
    assert keys - made == {"kafka-username"}
    assert "one key more: `kafka-username`" in text
