"""Which lists are a model's, by the intervention that they were logged under."""

from collections.abc import Callable, Collection, Mapping

from rankstream.settings import ModelSettings
from rankstream.wire.envelope import is_pointer
from streams.statistics.keys import ScopeName


def logged_by(intervention: str, models: Collection[str]) -> bool:
    """Whether lists of an intervention are of one of these models.

    They are logged under the model's name, or under MODEL@EPOCH.VERSION of what was
    trained, promoted or rolled back to.

    Examples
    --------
    >>> [logged_by(x, ["a"]) for x in ("a", "a@1.20", "a@b", "b@1.20")]
    [True, True, False, False]
    """
    if intervention in models:
        return True
    model, _, pointer = intervention.rpartition("@")
    return model in models and bool(is_pointer(pointer.encode()))


def made_in_turn(models: Mapping[str, ModelSettings]) -> list[str]:
    """Names of models that are trained or curves, these first: others take them.

    Examples
    --------
    >>> made_in_turn({
    ...     "a": ModelSettings(features=1, learner="trained"),
    ...     "b": ModelSettings(learner="examination"),
    ...     "c": ModelSettings(features=1),
    ... })
    ['b', 'a']
    """
    made = [name for name, model in models.items() if not model.learns_online]
    return sorted(made, key=lambda name: (not models[name].is_curve, name))


def scopes_for(name: str, model: ModelSettings) -> Callable[[ScopeName], bool]:
    """Whether a scope has lists that the model of a name learns from.

    A curve is of users, and not of a ranker: of all lists, where none are named.
    """
    if model.is_curve and not model.learns_from:
        return lambda _: True
    models = frozenset(model.sources_of(name))
    return lambda scope: logged_by(scope.intervention, models)
