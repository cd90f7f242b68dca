"""A first settings file: what was answered is set, all else stands beside as comment.

Comments are the docstrings of the sections themselves.
"""

import inspect
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from rankstream.configuration.curves import PositionCurve
from rankstream.configuration.former import toml_value
from rankstream.configuration.models import ONLINE, TRAINED
from rankstream.configuration.section import Section
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.folders import writing
from rankstream.settings import (
    ExperimentSettings,
    FormatSettings,
    KafkaSettings,
    ModelSettings,
    RedisSettings,
    SourceSettings,
    StatisticsSettings,
    TimeSettings,
    load_settings,
)

NO_KAFKA = "none"
OWN, UBI, METARANK = EVENTS = ("own", "ubi", "metarank")
"""What events look like."""

COUNT, COMPARE, LEARN = GOALS = ("count", "compare", "learn")
"""What is to be done with them."""

TOPICS = {UBI: ("ubi_queries", "ubi_events"), METARANK: ("metarank",)}
"""Where other systems usually write, and the file says so."""

FORMATS = {OWN: "jsonl", UBI: UBI, METARANK: METARANK}

MODEL, EXPERIMENT, CURVE, FORMAT = "search", "first", "eyes", "log"
"""Names in the file."""

FIXED = "Once something is counted, most of these cannot change within a namespace."

WIDTH = 86

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Wishes:
    """What somebody answered.

    Parameters
    ----------
    kafka
        Addresses of brokers, or `NO_KAFKA`.
    events
        One of `EVENTS`.
    goal
        One of `GOALS`.
    namespace
        Prefix of topics and keys; may be empty.
    features
        How many numbers there are of each item.
    """

    kafka: str
    events: str
    goal: str
    namespace: str = ""
    features: int = 10


@dataclass(frozen=True)
class NewSettings(Answer):
    """The file that was written, and what to do next, in order."""

    file: str
    next: list[str]


def write_settings(wishes: Wishes, file: Path) -> NewSettings:
    """Write the file, unless there is one.

    Raises
    ------
    ValueError
        Where there is one, or the answers do not make settings.
    RuntimeError
        Where it cannot be written.
    """
    if file.exists():
        raise ValueError(
            f"a settings file must not be overwritten; {file} is there: name another, "
            "or remove it"
        )
    text = settings_text(wishes)
    with tempfile.TemporaryDirectory() as folder:
        # As all commands will read it, without this machine's variables.
        trial = Path(folder) / "settings.toml"
        trial.write_text(text, encoding="utf-8")
        load_settings(trial, {})
    with writing(file), file.open("x", encoding="utf-8") as opened:
        opened.write(text)
    return NewSettings(str(file), next_steps(wishes, file))


def settings_text(wishes: Wishes) -> str:
    """The whole file."""
    head = (
        "Settings of rankstream. What stands behind # is the default, and may be set."
    )
    parts = [f"{_comment(head)}# docs/settings.md says more of each.\n"]
    if wishes.kafka != NO_KAFKA:
        said = _comment("Prefix of all topics and keys.")
        parts.append(f"{said}namespace = {toml_value(wishes.namespace)}\n")
    parts += _sections(wishes)
    return "\n".join(parts)


def _sections(wishes: Wishes) -> Iterator[str]:
    is_on_kafka = wishes.kafka != NO_KAFKA
    if is_on_kafka:
        yield _section("kafka", KafkaSettings, {"bootstrap": wishes.kafka})
        yield _section("redis", RedisSettings, {"url": RedisSettings().url})
    yield _section("time", TimeSettings, {}, FIXED)
    yield _section("statistics", StatisticsSettings, {}, FIXED)
    if not is_on_kafka:
        named = {"format": FORMATS[wishes.events]}
        yield _section(f"formats.{FORMAT}", FormatSettings, named)
    elif wishes.events != OWN:
        for number, topic in enumerate(TOPICS[wishes.events]):
            named = {"topic": topic, "format": wishes.events}
            whole = _section(f"sources.{topic}", SourceSettings, named)
            # What the section is was said above the first one.
            yield whole[whole.index("[") :] if number else whole
    if wishes.goal == LEARN:
        versions = ONLINE if is_on_kafka else TRAINED
        form = {"features": wishes.features, "versions": versions}
        yield _section(f"models.{MODEL}", ModelSettings, form)
    if wishes.goal == COMPARE:
        rankers = {"rankers": {"old": "", "new": ""}}
        yield _section(f"experiments.{EXPERIMENT}", ExperimentSettings, rankers)
    else:
        estimator = {"estimator": PositionCurve.__struct_config__.tag}
        yield _section(f"curves.{CURVE}", PositionCurve, estimator)


def _section(name: str, kind: type[Section], values: Values, also: str = "") -> str:
    """A section: its docstring, what is set, and the defaults of all else."""
    paragraphs = (inspect.getdoc(kind) or "").split("\n\n")
    said = "".join(_comment(each) for each in [*paragraphs, *filter(None, [also])])
    lines = [f"{key} = {toml_value(value)}" for key, value in values.items()]
    for field in msgspec.structs.fields(kind):
        default = _default(field)
        is_section = isinstance(default, msgspec.Struct) or default is None
        if field.name not in values and not (field.required or is_section):
            lines.append(f"# {field.name} = {toml_value(default)}")
    return f"{said}[{name}]\n" + "\n".join(lines) + "\n"


def _default(field: msgspec.structs.FieldInfo) -> Any:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


def _comment(text: str) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent="# ", subsequent_indent="# ",
        break_on_hyphens=False, break_long_words=False,
    ) + "\n"  # fmt: skip


def next_steps(wishes: Wishes, file: Path) -> list[str]:
    """Commands that follow, in order."""
    config = f"--config {file}"
    if wishes.kafka == NO_KAFKA:
        read = f"{config} --format {FORMAT}"
        steps = [
            f"rankstream validate FILE {read}",
            f"rankstream replay FILE {read} --local --out counted/",
        ]
        last = f"rankstream statistics list {config} --local counted/"
        if wishes.goal == LEARN:
            last = (
                f"rankstream train --log FILE {read} --features FEATURES --model "
                f"{MODEL} --out trained/"
            )
        return [*steps, last]
    steps = [
        f"rankstream doctor {config}",
        f"rankstream topics create {config}",
        f"rankstream worker {config}",
    ]
    if wishes.goal == COMPARE:
        steps.append(f"rankstream experiments publish {config}")
    return [*steps, f"rankstream monitor {config}"]
