"""Which lists are a model's, by the intervention that they were logged under."""

from collections.abc import Callable, Collection

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


def scopes_for(models: Collection[str]) -> Callable[[ScopeName], bool]:
    """Whether a scope has lists of one of these models; with none, of any.

    A curve is of users, and not of a ranker: of all lists, where none are named.
    """
    if not models:
        return lambda _: True
    known = frozenset(models)
    return lambda scope: logged_by(scope.intervention, known)
