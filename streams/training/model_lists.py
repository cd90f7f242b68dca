"""Which lists are a model's, and which a model that learns online may have made."""

from collections.abc import Callable, Collection, Container, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from models.estimators.adaptivity import is_chosen_from_clicks
from rankstream.wire.envelope import is_pointer
from streams.statistics.keys import ScopeName

if TYPE_CHECKING:
    from rankstream.settings import Settings


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


class LearnedOnline(Container[str]):
    """Interventions, other than versions, whose lists a learning model may have made.

    Models that learn; those that did, as snapshots show; and no name at all, while an
    experiment combines lists of such models: combined lists name no model.

    Parameters
    ----------
    read
        Gives the models of which snapshots are kept; asked once, if ever.
    """

    def __init__(self, settings: "Settings", read: Callable[[], Iterable[str]]) -> None:
        self._online = {*settings.online}
        makers = {
            x for one in settings.experiments.values() for x in one.rankers.values()
        }
        if any(is_chosen_from_clicks(maker, self._online) for maker in makers):
            self._online.add("")
        self._read = read

    @cached_property
    def _learned(self) -> frozenset[str]:
        return frozenset(self._read())

    def __contains__(self, intervention: object) -> bool:
        if not intervention or intervention in self._online:
            return intervention in self._online
        return intervention in self._learned
