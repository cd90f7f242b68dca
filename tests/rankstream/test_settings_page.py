"""The page of settings names each with its default, and no other."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rankstream.configuration.canary import CanarySettings
from rankstream.configuration.curves import ESTIMATORS
from rankstream.configuration.training import Schedule
from rankstream.configuration.trees import TreesSettings
from rankstream.settings import (
    BanditSettings,
    DecisionSettings,
    DeliverySettings,
    ExperimentSettings,
    FormatSettings,
    IngestionSettings,
    KafkaSettings,
    LimitSettings,
    MetricsSettings,
    ModelSettings,
    RedisSettings,
    ServeSettings,
    SourceSettings,
    StatisticsSettings,
    TimeSettings,
    TrainingSettings,
    TrainSettings,
)

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \|", re.MULTILINE)
SECTIONS: dict[str, type[msgspec.Struct]] = {
    "kafka": KafkaSettings,
    "redis": RedisSettings,
    "time": TimeSettings,
    "limits": LimitSettings,
    "statistics": StatisticsSettings,
    "ingestion": IngestionSettings,
    "delivery": DeliverySettings,
    "metrics": MetricsSettings,
    "sources.NAME": SourceSettings,
    "formats.NAME": FormatSettings,
    "train": TrainSettings,
    "serve": ServeSettings,
    "models.NAME": ModelSettings,
    "models.NAME.canary": CanarySettings,
    "models.NAME.training": TrainingSettings,
    "models.NAME.training.trees": TreesSettings,
    "curves.NAME.schedule": Schedule,
    "decisions.NAME": DecisionSettings,
    "bandits.NAME": BanditSettings,
    "experiments.NAME": ExperimentSettings,
}


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """What a setting is where nobody sets it."""
    if field.required:
        return "needed"
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    # A section of its own, whose defaults are below.
    return {} if isinstance(field.default, msgspec.Struct) else field.default


def written(cell: str) -> Any:
    """The value in a cell of the page."""
    return (
        "needed" if cell == "needed" else json.loads(cell.strip("`").replace("_", ""))
    )


def on_the_page(section: str) -> dict[str, Any]:
    """Settings and defaults in their order."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.partition(f"## `[{section}]`")[2].partition("\n## ")[0]
    return {name: written(cell) for name, cell in ROW.findall(part)}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_every_setting_and_its_default(section: str) -> None:
    """With nothing besides."""
    fields = msgspec.structs.fields(SECTIONS[section])
    assert on_the_page(section) == {x.name: default_of(x) for x in fields}


def test_the_page_has_every_option_of_a_curve() -> None:
    """Of all estimators, which it names."""
    found = on_the_page("curves.NAME")
    assert found.pop("estimator") == "needed"
    fields = [x for each in ESTIMATORS.values() for x in msgspec.structs.fields(each)]
    assert found == {x.name: default_of(x) for x in fields}
