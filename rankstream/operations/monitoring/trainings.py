"""Trainings: of models, with what their versions earned, and of curves of bias."""

from collections.abc import Mapping
from typing import Any

import msgspec

from rankstream.configuration.training import Schedule
from rankstream.operations.answers.models.trainings import Counted, next_in_words
from rankstream.wire.envelope import Pointer
from rankstream.wire.models.curves import CurveRecord, published
from rankstream.wire.models.model_evaluations import (
    FIRST_POLICY,
    InterventionRate,
    ModelRates,
    place_of,
)
from rankstream.wire.models.training import (
    LEFT_ALONE,
    Position,
    RunRecord,
    Status,
    decode_record,
    decode_training_key,
)
from rankstream.wire.schemas import SchemaRefused

MOST_ROWS = 60
"""Interventions that are shown: the newest."""


class Interventions:
    """Runs and states from `training`, clicks per list from `evaluations`.

    `counted` is what the statistics hold, as the schedules of `trained` see it.
    `refused` says in words why records were passed over; empty if none were.

    Parameters
    ----------
    trained
        Schedules of models that are trained, and of curves, in the settings.
    """

    def __init__(self, trained: Mapping[str, Schedule]) -> None:
        self.refused = ""
        self.counted = Counted()
        self._trained = trained
        self._runs: dict[str, RunRecord] = {}
        self._states: dict[str, Status] = {}
        self._positions: dict[str, Position] = {}
        self._known: dict[str, dict[str, Any]] = {
            "run": self._runs,
            "status": self._states,
            "position": self._positions,
        }
        self._rates: dict[str, InterventionRate] = {}
        self._question = ""
        self._alpha: float | None = None

    def take(self, key: bytes, value: bytes | None) -> bool:
        """Take a record of `training`; whether it changes what is shown."""
        found = decode_training_key(key)
        if found is None or found.kind not in self._known:
            return False
        known = self._known[found.kind]
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
        self._question, self._alpha = rates.question, rates.alpha
        self._rates |= {each.intervention: each for each in rates.interventions}

    @property
    def is_begun(self) -> bool:
        """Whether there is anything to show."""
        return bool(self._runs or self._rates or self._states or self._trained)

    def overview(self) -> dict[str, Any]:
        """A row for each intervention, the newest of each model first, and states.

        The policy that was served before the first one has the last row of a model.
        """
        places = {name: place_of(name) for name in {*self._runs, *self._rates}}
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
            "next": [self._next(model) for model in sorted(self._trained)],
            "question": self._question,
            "alpha": self._alpha,
        }

    def _next(self, model: str) -> dict[str, str]:
        state = self._states.get(model)
        said = next_in_words(
            model,
            self._trained[model],
            self._positions.get(model),
            self.counted,
            is_left_alone=state is not None and state.state == LEFT_ALONE,
        )
        return {"model": model, "said": said}

    def _age(self, name: str) -> tuple[int, Pointer]:
        run = self._runs.get(name)
        return (run.created_ms if run else -1, place_of(name)[1])

    def _row(self, name: str) -> dict[str, Any]:
        run, rate = self._runs.get(name), self._rates.get(name)
        return {
            "name": name,
            "is_first": place_of(name)[1] == FIRST_POLICY,
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


class LearnedCurves:
    """The newest curve of bias of each model that is one, as records of `training` say.

    `refused` says why some were passed over.
    """

    def __init__(self) -> None:
        self.refused = ""
        self._fits: dict[str, dict[Pointer, CurveRecord]] = {}

    def take(self, key: bytes, value: bytes | None) -> bool:
        """Take a record; whether it changes what is shown."""
        found = decode_training_key(key)
        if found is None or found.kind != "curve" or value is None:
            return False
        try:
            record: CurveRecord = decode_record("curve", value)
        except (SchemaRefused, msgspec.DecodeError) as error:
            self.refused = str(error)
            return True
        fits = self._fits.setdefault(record.model, {})
        if _place(record) in fits:
            return False
        fits[_place(record)] = record
        return True

    def overview(self, served: Mapping[str, Pointer]) -> list[dict[str, Any]]:
        """Each curve rank by rank, and what it is from; by name of the model.

        Parameters
        ----------
        served
            The newest version of models: a later epoch than any fit is a rollback, to
            the last one of that version before it.
        """
        return [
            msgspec.to_builtins(published(_taken(fits, served.get(model))))
            for model, fits in sorted(self._fits.items())
        ]


def _taken(fits: Mapping[Pointer, CurveRecord], served: Pointer | None) -> CurveRecord:
    newest = fits[max(fits)]
    if served is None or served.epoch <= newest.epoch:
        return newest
    same = [place for place in fits if place.version == served.version]
    if not same:
        return newest
    return msgspec.structs.replace(fits[max(same)], epoch=served.epoch)


def _place(record: CurveRecord) -> Pointer:
    return Pointer(record.epoch, record.version)
