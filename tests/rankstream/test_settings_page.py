"""The page of settings names each with its default, and no other."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rankstream.settings import (
    DeliverySettings,
    ExperimentSettings,
    FormatSettings,
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
    "delivery": DeliverySettings,
    "metrics": MetricsSettings,
    "sources.NAME": SourceSettings,
    "formats.NAME": FormatSettings,
    "train": TrainSettings,
    "serve": ServeSettings,
    "models.NAME": ModelSettings,
    "models.NAME.training": TrainingSettings,
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


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_every_setting_and_its_default(section: str) -> None:
    """In the order in which they are declared."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.partition(f"## `[{section}]`")[2].partition("\n## ")[0]
    fields = msgspec.structs.fields(SECTIONS[section])
    assert [(name, written(cell)) for name, cell in ROW.findall(part)] == [
        (field.name, default_of(field)) for field in fields
    ]
