"""Experiments as series: the newest epoch of each, by its last verdict."""

from collections.abc import Collection, Iterator

from rankstream.wire.verdicts import Verdict
from streams.series import Series

LIGHTS = {"ok": 0, "warning": 1, "alarm": 2}


def experiment_series(verdicts: Collection[Verdict]) -> Iterator[Series]:
    """Lists, health, preferences and the winner; experiments with most lists first.

    Preferences are those of the method that drew the lists, with the interval for
    sessions, which names winners; an end that is not known is left out.
    """
    for each in sorted(verdicts, key=lambda x: (-_n_lists(x), x.experiment)):
        of_experiment = {"experiment": each.experiment}
        yield Series("experiment_epoch", of_experiment, each.epoch)
        yield Series("experiment_lists", of_experiment, _n_lists(each))
        for check in each.health:
            labels = of_experiment | {"check": check.name}
            yield Series("experiment_health", labels, LIGHTS[check.state])
        for pair in each.drawn_by.pairs:
            labels = of_experiment | {"ranker": pair.a, "against": pair.b}
            low, high = pair.sessions
            yield Series("experiment_preference", labels, pair.mean)
            for name, end in (("low", low), ("high", high)):
                if end is not None:
                    yield Series(f"experiment_preference_{name}", labels, end)
        for ranker in each.rankers:
            labels = of_experiment | {"ranker": ranker}
            is_winner = ranker == each.drawn_by.winner
            yield Series("experiment_winner", labels, is_winner)


def _n_lists(verdict: Verdict) -> int:
    return verdict.drawn_by.impressions
