"""Forms that models had: written out anew where a file has one, and read in records.

`learner` was also "trained", of a model that nothing learns online, and "examination",
of a curve of bias. Learners' states and records of trainings keep models in that form.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rankstream.configuration.curves import (
    ESTIMATORS,
    OF_SOME,
    CurveSettings,
    PositionCurve,
)
from rankstream.configuration.models import ONLINE, PROMOTED, TRAINED, ModelSettings
from rankstream.configuration.training import LOGGING_LOSS, Schedule

LEARNER = "learner"

NEW_NAMES = {LEARNER: "versions"}

EXAMINATION = "examination"
"""The learner of what was a curve."""


def former_models(tree: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each setting of a form that there was, what to write, and what to say of it."""
    models = tree.get("models")
    for name, model in models.items() if isinstance(models, dict) else ():
        learner = model.get(LEARNER) if isinstance(model, dict) else None
        if learner == TRAINED:
            anew = {NEW_NAMES.get(k, k): v for k, v in model.items()}
            is_now, section = "versions are", in_toml("models", name, anew)
        elif learner == EXAMINATION:
            is_now, section = "is a curve", in_toml("curves", name, _curve(model))
        else:
            continue
        setting = f"models.{name}.{LEARNER}"
        fact = f"{setting} must name a learner; got {learner!r}, which {is_now} now"
        yield setting, section, fact


def recorded_model(model: ModelSettings) -> dict[str, Any]:
    """A model as states and records have it; what was not chosen is not there."""
    form: dict[str, Any] = msgspec.to_builtins(model)
    plan = model.training
    # Earlier releases did not know these.
    for setting, is_chosen in (
        ("estimator", bool(plan.estimator)),
        ("proximal_ratio", plan.takes_ratio),
        ("largest_loss", plan.largest_loss is not None),
        ("floor", plan.loss == LOGGING_LOSS),
        ("trees", model.grows_trees),
    ):
        if not is_chosen:
            del form["training"][setting]
    # To whom a version goes out first has no part in what it is, nor has its bound.
    del form["canary"], form["snapshot_bytes"]
    for name in ("learns_from_groups", "feature_ranges"):
        if not form[name]:
            del form[name]
    if (versions := form.pop("versions")) != ONLINE:
        form[LEARNER] = versions
    return form


def model_of_record(form: Mapping[str, Any]) -> ModelSettings:
    """What `recorded_model` made, of this release or an earlier one."""
    fields = dict(form)
    if fields.get(LEARNER) in (TRAINED, PROMOTED):
        fields["versions"] = fields.pop(LEARNER)
    return msgspec.convert(fields, ModelSettings)


def curve_of_record(form: Mapping[str, Any]) -> CurveSettings:
    """The settings of a curve in the record of a fit, also of an earlier release."""
    fields = _curve(form) if form.get(LEARNER) == EXAMINATION else form
    found: CurveSettings = msgspec.convert(fields, CurveSettings)
    return found


def _curve(model: Mapping[str, Any]) -> dict[str, Any]:
    """The section of a curve that was a model."""
    options, training = (_table(model.get(k)) for k in ("options", "training"))
    estimator = options.get("estimator", PositionCurve().estimator)
    form = ESTIMATORS.get(estimator) if isinstance(estimator, str) else None
    of_others = OF_SOME.keys() - {*form.__struct_fields__} if form else set()
    fields = {k: v for k, v in options.items() if k not in of_others}
    fields |= {k: model[k] for k in ("seed", "learns_from") if k in model}
    schedule = {k: training[k] for k in Schedule.__struct_fields__ if k in training}
    return {"estimator": estimator, **fields, "schedule": schedule}


def _table(value: Any) -> Mapping[str, Any]:
    """What is no table says nothing here; the settings are refused anyway."""
    return value if isinstance(value, dict) else {}


def in_toml(table: str, name: str, fields: Mapping[str, Any]) -> str:
    """A section of a name as a file has it, with those below it that are not empty.

    Examples
    --------
    >>> print(in_toml("models", "a b", {"features": 2, "training": {"after": [9]}}))
    [models."a b"]
    features = 2
    [models."a b".training]
    after = [9]
    <BLANKLINE>
    """
    title = f"{table}.{name if _is_bare(name) else toml_value(name)}"
    below = {k: v for k, v in fields.items() if k in BELOW and isinstance(v, dict)}
    own = {k: v for k, v in fields.items() if k not in below}
    lines = []
    for head, section in {
        title: own,
        **{f"{title}.{k}": v for k, v in below.items()},
    }.items():
        if section or head == title:
            lines.append(f"[{head}]")
            lines += [f"{key} = {toml_value(value)}" for key, value in section.items()]
    return "\n".join(lines) + "\n"


BELOW = ("training", "schedule")
"""Sections of their own below that of a model or a curve."""


def _is_bare(name: str) -> bool:
    return name.replace("-", "").replace("_", "").isalnum() and name.isascii()


def toml_value(value: Any) -> str:
    """JSON is TOML for all that settings may be, but for tables."""
    if isinstance(value, dict):
        inside = ", ".join(
            f"{toml_value(k)} = {toml_value(v)}" for k, v in value.items()
        )
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    return msgspec.json.encode(value).decode()
