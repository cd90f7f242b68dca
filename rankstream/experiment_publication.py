"""The operator's side of experiments: what clients follow, and under which epochs."""

from collections.abc import Callable, Mapping

import msgspec

from rankstream.experiments import Store, stored_experiments
from rankstream.ranking.methods import DRAWN
from rankstream.ranking.scored_beside import scored_methods
from rankstream.settings import ExperimentSettings
from rankstream.used_epochs import Counted, why_used

REMOVED = "removed-experiments"
"""Documents that say which epochs were used up by experiments that were removed."""

_to_json = msgspec.json.Encoder().encode


class ExperimentError(RuntimeError):
    """A configuration cannot take the place of the one that is stored.

    Operator action: raise `epoch` of the experiment in the settings.
    """


def removed_epochs(store: Store) -> dict[str, int]:
    """The largest epoch of each experiment that was removed. Clients do not read it.

    Raises
    ------
    StoreUnavailable
        Where Redis does not answer.
    ValueError
        Where a document is no number.
    """
    return {
        name: msgspec.json.decode(value, type=int)
        for name, value in sorted(store.documents(REMOVED).items())
    }


def publish_experiments(
    store: Store,
    experiments: Mapping[str, ExperimentSettings],
    counted: Callable[[], Counted] = dict,
) -> dict[str, str]:
    """Bring the configurations of the settings to clients; what became of each.

    Parameters
    ----------
    counted
        Epochs that lists were counted under; asked only where something changes.

    Raises
    ------
    ExperimentError
        Where one differs from what is stored under the same epoch, or its epoch was
        used before; nothing is written then.
    ValueError
        Where one is scored by a method that is not fair on its lists, or its lists
        cannot be drawn by clients.
    """
    stored, removed = stored_experiments(store), removed_epochs(store)
    verdicts = {
        name: _becomes(name, wanted, stored.get(name))
        for name, wanted in sorted(experiments.items())
    }
    changed = [name for name, what in verdicts.items() if what != "unchanged"]
    known = counted() if changed else {}
    for name in changed:
        wanted = experiments[name]
        why = why_used(wanted, removed.get(name, 0), known.get(name, {}))
        if why:
            raise ExperimentError(
                f"experiments.{name} must have an epoch {why}; got {wanted.epoch}"
            )
    for name in sorted(set(stored) - set(experiments)):
        last = max(stored[name].epoch, removed.get(name, 0))
        verdicts[name] = f"removed; comes back with an epoch above {last} only"
        # First, so that a stop between the two forgets nothing.
        store.put_document(REMOVED, name, _to_json(last))
        store.put_document("experiments", name, None)
    for name in changed:
        store.put_document("experiments", name, _to_json(experiments[name]))
    return verdicts


def check_drawable(name: str, wanted: ExperimentSettings) -> None:
    """Refuse an experiment whose lists clients cannot draw.

    Raises
    ------
    ValueError
        With the methods that they can.
    """
    if wanted.method not in DRAWN:
        raise ValueError(
            f"experiments.{name}.method {wanted.method!r} cannot be drawn by services; "
            f"choose one of {sorted(DRAWN)}"
        )


def _becomes(
    name: str, wanted: ExperimentSettings, held: ExperimentSettings | None
) -> str:
    """What becomes of an experiment beside what clients follow."""
    scored_methods(wanted)
    check_drawable(name, wanted)
    if held is None:
        return "new"
    if held == wanted:
        return "unchanged"
    if wanted.epoch <= held.epoch:
        raise ExperimentError(
            f"experiments.{name} must have an epoch above {held.epoch}, as it "
            f"differs from what runs; got {wanted.epoch}"
        )
    return f"epoch {held.epoch} -> {wanted.epoch}"
