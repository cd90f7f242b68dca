"""Interventions of trained models: what they were made from, and what they earned."""

from typing import Any

import msgspec

from rankstream.wire.envelope import Pointer, SnapshotError, pointer_from
from rankstream.wire.intervention_rates import InterventionRate, ModelRates
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.training import (
    RunRecord,
    Status,
    decode_record,
    decode_training_key,
)

MOST_ROWS = 60
"""Interventions that are shown: the newest."""


class Interventions:
    """Runs and states from `training`, clicks per list from `evaluations`.

    `refused` says in words why records were passed over; empty if none were.
    """

    def __init__(self) -> None:
        self.refused = ""
        self._runs: dict[str, RunRecord] = {}
        self._states: dict[str, Status] = {}
        self._rates: dict[str, InterventionRate] = {}
        self._question = ""

    def take(self, key: bytes, value: bytes | None) -> bool:
        """Take a record of `training`; whether it changes what is shown."""
        found = decode_training_key(key)
        if found is None or found.kind not in ("run", "status"):
            return False
        known: dict[str, Any] = self._runs if found.kind == "run" else self._states
        if value is None:
            return known.pop(found.name, None) is not None
        try:
            record = decode_record(found.kind, value)
        except (SchemaRefused, msgspec.DecodeError) as error:
            self.refused = str(error)
            return True
        if known.get(found.name) == record:
            return False
        known[found.name] = record
        return True

    def take_rates(self, rates: ModelRates) -> None:
        """Take clicks per list of all interventions of a model."""
        self._question = rates.question
        self._rates |= {each.intervention: each for each in rates.interventions}

    def overview(self) -> dict[str, Any]:
        """A row for each intervention, the newest of each model first, and states."""
        places = {name: _place_of(name) for name in {*self._runs, *self._rates}}
        ordered = sorted(places, key=lambda name: places[name][1], reverse=True)
        ordered.sort(key=lambda name: places[name][0])
        newest = set(sorted(places, key=self._age, reverse=True)[:MOST_ROWS])
        return {
            "rows": [self._row(name) for name in ordered if name in newest],
            "n_older": max(0, len(ordered) - MOST_ROWS),
            "states": [
                {
                    "model": model,
                    "state": each.state,
                    "said": each.said,
                    "at_ms": each.at_ms,
                }
                for model, each in sorted(self._states.items())
            ],
            "question": self._question,
        }

    def _age(self, name: str) -> tuple[int, Pointer]:
        run = self._runs.get(name)
        return (run.created_ms if run else -1, _place_of(name)[1])

    def _row(self, name: str) -> dict[str, Any]:
        run, rate = self._runs.get(name), self._rates.get(name)
        return {
            "name": name,
            "run": None if run is None else _told(run),
            "rate": None if rate is None else msgspec.to_builtins(rate),
        }


def _told(run: RunRecord) -> dict[str, Any]:
    """What is shown of a training."""
    sizes = run.sizes
    return {
        "created_ms": run.created_ms,
        "reason": run.reason,
        "interactions": sum(n for _, n in run.counts),
        "clicks": sizes.n_clicks,
        "items": sizes.n_items,
        "below": sizes.n_below,
        "share_below": sizes.share_below,
        "reward": run.reward,
        "reward_reason": run.reward_reason,
    }


def _place_of(name: str) -> tuple[str, Pointer]:
    """Model and pointer; names are those of trained interventions."""
    model, _, pointer = name.rpartition("@")
    try:
        return model, pointer_from(pointer.encode(errors="replace"))
    except SnapshotError:
        return name, Pointer(-1, -1)
