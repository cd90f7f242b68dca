"""A real Prometheus that reads pages and evaluates rules."""

import json
import os
import shutil
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy.local_server import LocalServer
from deploy.process import ServerProcess
from tests.services import ServiceMissing, without

JOB = "rankstream"


def program(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Where `prometheus` or `promtool` is; without it the test is skipped by hand."""
    found = shutil.which(name, path=environment.get("PATH"))
    if not found:
        missing = f"no {name} is on the path: install the package prometheus"
        without(ServiceMissing(missing), environment)
    return str(found)


class Prometheus(LocalServer):
    """Reads these ports of the loopback interface, and evaluates rules, each second."""

    def __init__(self, folder: Path, ports: Sequence[int], rules: str) -> None:
        super().__init__(folder)
        self._program = program("prometheus")
        self._ports = ports
        self._rules = rules

    def values(self, query: str) -> dict[tuple[tuple[str, str], ...], float]:
        """What an expression comes to now, by labels."""
        asked = urllib.parse.urlencode({"query": query})
        answer = self._ask(f"/api/v1/query?{asked}")
        return {
            tuple(sorted(each["metric"].items())): float(each["value"][1])
            for each in answer["result"]
        }

    def alerts(self) -> set[str]:
        """Names of alerts that fire."""
        found = self._ask("/api/v1/alerts")["alerts"]
        return {
            each["labels"]["alertname"] for each in found if each["state"] == "firing"
        }

    def fired(self) -> set[str]:
        """Names of alerts that have ever fired."""
        query = 'max_over_time(ALERTS{alertstate="firing"}[1h])'
        return {dict(labels)["alertname"] for labels in self.values(query)}

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as answer:
            return json.loads(answer.read())["data"]

    def _prepared(self) -> tuple[ServerProcess, Callable[[], bool]]:
        (self.folder / "rules.yml").write_text(self._rules, encoding="utf-8")
        targets = [f"127.0.0.1:{port}" for port in self._ports]
        every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        told = {
            "global": every | {"scrape_timeout": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [
                {"job_name": JOB, "static_configs": [{"targets": targets}]}
            ],
        }
        # JSON is YAML.
        (self.folder / "prometheus.yml").write_text(json.dumps(told), encoding="utf-8")
        command = [
            self._program,
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        return ServerProcess(command, self.folder, "prometheus"), self._is_ready

    def _is_ready(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self.port}/-/ready"
            with urllib.request.urlopen(url, timeout=1.0) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
