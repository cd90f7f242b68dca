"""What commands print with `--json`: types of results, by the words of a call."""

from collections.abc import Mapping
from typing import Any, Literal

from producers.prescan import Forecasted
from rankstream.operations.answers.actions import Actions
from rankstream.operations.answers.answer_schemas import Schema, schema_of
from rankstream.operations.answers.as_builtins import OTHERS, types_of
from rankstream.operations.answers.capacity.plan import Plan
from rankstream.operations.answers.comparisons.experiments import Comparison
from rankstream.operations.answers.comparisons.refitted import Refitted
from rankstream.operations.answers.copies import (
    BackedUp,
    Dumped,
    Erasure,
    ExportedArrays,
    RankedItems,
    Restored,
)
from rankstream.operations.answers.dead_letters import (
    Letter,
    LetterCount,
    LetterDetails,
    LettersSent,
)
from rankstream.operations.answers.decisions import DecidedSet, Rule, Withdrawn
from rankstream.operations.answers.exports.exported_curve import ExportedCurve
from rankstream.operations.answers.installation.access import RoleAccess
from rankstream.operations.answers.installation.diagnosis import Diagnosis
from rankstream.operations.answers.installation.new_settings import NewSettings
from rankstream.operations.answers.installation.topics import TopicsStanding
from rankstream.operations.answers.models.asked import Asked
from rankstream.operations.answers.models.canaries import CanaryState
from rankstream.operations.answers.models.deployment import RecordedChange
from rankstream.operations.answers.models.snapshots import (
    CheckedVersion,
    Version,
    VersionDetails,
)
from rankstream.operations.answers.models.trainings import ModelStanding
from rankstream.operations.answers.models.tree_models import ImportedTrees
from rankstream.operations.answers.models.verification import Verification
from rankstream.operations.answers.sent import Folded, Sent
from rankstream.operations.answers.shown_query import ShownQuery
from rankstream.operations.answers.statistics import (
    ConvertedPart,
    CountedQueries,
    WrittenStatistics,
)
from rankstream.operations.answers.values import Values
from rankstream.operations.commands.monitor.result import MONITORED
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.training import RunRecord
from rankstream.wire.nearest_name import meant
from rankstream.wire.verdicts import Verdict

CHANGE: dict[str, Any] = {"model": str, "version": str, OTHERS: Any}
"""What is served now, with the figures that it was decided on."""

IMPORTED: dict[str, Any] = {"model": str, "snapshot": str, **types_of(ImportedTrees)}
"""What --out wrote; what is served instead is a change."""

NO_CANARY: dict[str, Any] = {"canary": None, "last": RecordedChange | None}

DEAD: dict[str, Any] = {
    "key": str, "offset": int, "bytes": int, "why": str, "repair": str,
    "is_repaired": bool,
}  # fmt: skip

STATUS = Literal["PASS", "WARN", "FAIL", "NONE"]

CHECK: dict[str, Any] = {
    "name": str, "status": STATUS, "count": int, "codes": dict[str, int],
    "rule": str, "remedy": str, "examples": list[dict[str, str | int]],
}  # fmt: skip

RUN = (RunRecord, CurveRecord)

TRAININGS: dict[str, Any] = {
    "trainings": list[RunRecord | CurveRecord],
    "models": list[ModelStanding],
}

TRAINED: dict[str, Any] = {
    "run": RunRecord,
    "curve": CurveRecord | None,
    "feature_names": list[str],
    "snapshot": str,
}

RECOUNTED: dict[str, Any] = {
    **dict.fromkeys(("lost", "double", "wrong", "extra", "events"), int),
    **dict.fromkeys(("differences", "accepted_losses"), list[str]),
}

VALIDATED: dict[str, Any] = {
    "status": STATUS,
    "files": list[str],
    **dict.fromkeys(("lists", "lists_of_impressions", "clicks", "late_by_now"), int),
    "outcomes": dict[str, int],
    "checks": [CHECK],
}

RESULTS: Mapping[str, Any] = {
    "backup": BackedUp,
    "decisions list": list[Rule],
    "decisions list RULE": list[DecidedSet],
    "decisions show": list[DecidedSet],
    "decisions withdraw": Withdrawn,
    "dlq count": list[LetterCount],
    "dlq list": list[Letter],
    "dlq replay": LettersSent,
    "dlq show": LetterDetails,
    "doctor": Diagnosis,
    "dump": Dumped,
    "erase": Erasure,
    "evaluate": Values,
    "experiments list": list[Comparison],
    "experiments publish": dict[str, str],
    "experiments show": Verdict,
    "experiments show --refit": Refitted,
    "export": ExportedArrays,
    "feed": Sent,
    "init": NewSettings,
    "intervene": Asked,
    "intervene --list": TRAININGS,
    "intervene --show": RUN,
    "intervene --verify": Verification,
    "intervene --wait": list[RunRecord | CurveRecord],
    "monitor": MONITORED,
    "plan": Plan,
    "rank": list[RankedItems],
    "recount": RECOUNTED,
    "replay": Sent,
    "replay --check": Forecasted,
    "replay --local": Folded,
    "restore": Restored,
    "snapshots canary": (CanaryState, NO_CANARY, CHANGE),
    "snapshots export-curve": ExportedCurve,
    "snapshots follow": CHANGE,
    "snapshots history": list[RecordedChange],
    "snapshots import": (CHANGE, IMPORTED),
    "snapshots list": list[Version],
    "snapshots promote": CHANGE,
    "snapshots repair": [DEAD],
    "snapshots rollback": CHANGE,
    "snapshots show": VersionDetails,
    "snapshots verify": list[CheckedVersion],
    "statistics actions": Actions,
    "statistics convert": list[ConvertedPart],
    "statistics export": WrittenStatistics,
    "statistics list": CountedQueries,
    "statistics show": ShownQuery,
    "topics": TopicsStanding,
    "topics acls": list[RoleAccess],
    "train": TRAINED,
    "train --verify": Verification,
    "validate": VALIDATED,
}
"""A list of one is a list of such, a tuple one of several, a mapping an object."""


def result_schema(words: str) -> Schema:
    """The schema of what a command prints.

    Raises
    ------
    ValueError
        Where no command is called so.
    """
    if words not in RESULTS:
        raise ValueError(
            "--result must be a command as results are named; got "
            f"{words!r}; {meant(words, RESULTS)}"
        )
    return schema_of(RESULTS[words], f"rankstream {words} --json")


def result_schemas() -> dict[str, Schema]:
    """All of them by the words of a call."""
    return {words: result_schema(words) for words in RESULTS}
