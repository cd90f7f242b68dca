"""What `deploy/compose.yaml` starts, held to its schema and to what we have."""

import importlib.metadata
import json
import subprocess
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
import yaml

from tests.deploy.programs import CONFIG, DEPLOY, Program, brought

FOLDER = "/etc/rankstream"


def read(name: str) -> Any:
    """A file of YAML in deploy/."""
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


COMPOSE = read("compose.yaml")
SERVICES = COMPOSE["services"]
OURS = {name: each for name, each in SERVICES.items() if each["image"] == "rankstream"}


def program(service: dict[str, Any]) -> Program:
    """A service of ours, as its command finds itself."""
    variables = dict(service["environment"])
    config = DEPLOY / Path(variables.pop(CONFIG)).name
    places = [each.split(":")[:2] for each in service["volumes"]]
    assert [f"./{config.name}", f"{FOLDER}/{config.name}"] in places
    ports = {"RANKSTREAM_METRICS__PORT": "9100"}  # of the image
    return Program(service["command"], ports | variables, config)


PROGRAMS = {name: program(each) for name, each in OURS.items()}


def test_it_is_what_compose_takes() -> None:
    """By the schema of the Compose specification."""
    brought = importlib.metadata.distribution("check-jsonschema")
    place = "check_jsonschema/builtin_schemas/vendor/compose-spec.json"
    text = Path(str(brought.locate_file(place))).read_text(encoding="utf-8")
    schema = json.loads(text)
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []
    wrong = COMPOSE | {"services": {"worker": {"readonly": True}}}
    assert [*validator.iter_errors(wrong)]


def test_without_a_profile_kafka_and_redis_start() -> None:
    """As the pages say that begin with them."""
    small = {name for name, each in SERVICES.items() if "profiles" not in each}
    assert small == {"kafka", "redis"}
    assert {*chain(*(each.get("profiles", []) for each in SERVICES.values()))} == {
        "all"
    }


def test_every_command_is_there_once() -> None:
    """With its topics made before."""
    assert {each.command for each in PROGRAMS.values()} == {*OURS}
    assert [*PROGRAMS["topics"].words] == ["topics", "create"]
    created = "service_completed_successfully"
    for name in OURS.keys() - {"topics"}:
        assert OURS[name]["depends_on"]["topics"] == {"condition": created}


@pytest.mark.parametrize("name", OURS)
def test_a_command_finds_its_settings_and_the_others(name: str) -> None:
    """By names and ports of this file."""
    settings = PROGRAMS[name].settings()
    listeners = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"//{settings.kafka.bootstrap}" in listeners
    assert urlsplit(settings.redis.url).hostname == "redis"
    assert PROGRAMS[name].pages() or name == "topics"


@pytest.mark.parametrize("name", OURS)
def test_a_container_of_ours_has_no_rights(name: str) -> None:
    """Nor a root that it may write to; it is given the time to stop."""
    service = OURS[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"] == "10001:10001"
    assert service["tmpfs"] == ["/tmp"]  # noqa: S108  of the container
    seconds = int(service["stop_grace_period"].removesuffix("s"))
    assert seconds > PROGRAMS[name].settings().delivery.stop_s


@pytest.mark.parametrize("name", ["worker", "serve"])
def test_health_is_that_of_all_that_runs(name: str) -> None:
    """Whether it does its work, which those wait for who need it."""
    kind, *words = OURS[name]["healthcheck"]["test"]
    assert [kind, *words[:4]] == ["CMD", "python", "-m", "deploy.health", "--all"]
    found = {urlsplit(url).port: urlsplit(url).path for url in words[4:]}
    pages = PROGRAMS[name].pages()
    assert found.keys() == pages.keys()
    assert {*found.values()} == {"/readyz"}
    assert all("/readyz" in paths for paths in pages.values())


def test_ports_are_published_on_loopback() -> None:
    """Of what is there to be asked from outside."""
    published = {port for each in SERVICES.values() for port in each.get("ports", [])}
    assert all(port.startswith("127.0.0.1:") for port in published)
    inner = {int(port.rpartition(":")[2]) for port in published}
    assert {8087, 8088, 9090, 3000} <= inner
    for name in ("serve", "monitor"):
        ((port, _),) = PROGRAMS[name].pages().items()
        assert f"127.0.0.1:{port}:{port}" in OURS[name]["ports"]


def test_what_is_mounted_is_there() -> None:
    """Or is a volume that is declared."""
    for each in SERVICES.values():
        for mount in each.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).exists()
            else:
                assert source in COMPOSE["volumes"]


def test_prometheus_asks_every_page() -> None:
    """By names that the pages may be asked by; jobs are those that alerts look for."""
    config = read("prometheus/prometheus.yml")
    workers, serve = config["scrape_configs"]
    asked = {
        (name, each["port"])
        for each in workers["dns_sd_configs"]
        for name in each["names"]
    }
    assert asked == {("worker", port) for port in PROGRAMS["worker"].pages()}
    assert all("/metrics" in paths for paths in PROGRAMS["worker"].pages().values())
    ((target,),) = (each["targets"] for each in serve["static_configs"])
    host, port = target.split(":")
    asked_of = PROGRAMS["serve"].settings().serve
    assert int(port) == asked_of.port
    assert host in asked_of.hosts
    assert host in SERVICES
    assert asked_of.open  # else it would ask for a token
    assert [workers["job_name"], serve["job_name"]] == [
        "rankstream",
        "rankstream-serve",
    ]


def test_prometheus_takes_its_configuration() -> None:
    """With the rules that lie beside it."""
    file = DEPLOY / "prometheus" / "prometheus.yml"
    done = subprocess.run(
        [brought("promtool"), "check", "config", file],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_monitor_finds_the_pages_of_the_worker() -> None:
    """Under the name of the service."""
    metrics = PROGRAMS["monitor"].settings().metrics
    assert metrics.host in SERVICES
    assert metrics.port == min(PROGRAMS["worker"].pages())
    assert PROGRAMS["worker"].settings().metrics.host == "0.0.0.0"  # noqa: S104


def test_grafana_reads_prometheus_and_the_dashboard() -> None:
    """Without anybody's hand."""
    grafana = SERVICES["grafana"]
    (mount,) = grafana["volumes"]
    source, place, mode = mount.split(":")
    assert (source, mode) == ("./grafana", "ro")
    assert grafana["environment"]["GF_PATHS_PROVISIONING"] == f"{place}/provisioning"
    (known,) = read("grafana/provisioning/datasources/prometheus.yml")["datasources"]
    url = urlsplit(known["url"])
    published = SERVICES[str(url.hostname)]["ports"]
    assert f"127.0.0.1:{url.port}:{url.port}" in published
    (provider,) = read("grafana/provisioning/dashboards/rankstream.yml")["providers"]
    assert provider["options"]["path"] == place
