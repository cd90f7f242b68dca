"""What became of trainings, by model, and how long they took."""

from collections import Counter
from collections.abc import Iterable, Iterator

from rankstream.wire.models.training import DONE, LEFT_ALONE, REFUSED
from streams.series import TRAINING_S, SecondsHistogram, Series

FENCED = "fenced"
"""Somebody else took the model over, and nothing was written."""

OUTCOMES = {
    DONE: "published",
    REFUSED: "refused",
    LEFT_ALONE: "left-alone",
    FENCED: FENCED,
}
"""How the page calls what the records of trainings say."""


class Trainings:
    """Counts since the process began.

    Parameters
    ----------
    models
        That are trained: each is told of before its first training.
    """

    def __init__(self, models: Iterable[str]) -> None:
        names = list(models)
        self._outcomes = Counter(
            {(name, outcome): 0 for name in names for outcome in OUTCOMES.values()}
        )
        self._seconds = {name: SecondsHistogram(TRAINING_S) for name in names}

    def ended(self, model: str, state: str, seconds: float | None = None) -> None:
        """Hear how one ended, and how long it took if it was not given up."""
        self._outcomes[model, OUTCOMES[state]] += 1
        if seconds is not None:
            self._seconds[model].observe(seconds)

    def totals(self) -> dict[str, int]:
        """Those that were published and refused, of all models."""
        return {
            f"interventions_{outcome}": sum(
                n for (_, each), n in self._outcomes.items() if each == outcome
            )
            for outcome in ("published", "refused")
        }

    def series(self) -> Iterator[Series]:
        """By model and outcome."""
        for (model, outcome), n in self._outcomes.items():
            yield Series("trainings", {"model": model, "outcome": outcome}, n)
        for model, seconds in self._seconds.items():
            yield Series("training_duration_seconds", {"model": model}, seconds)
