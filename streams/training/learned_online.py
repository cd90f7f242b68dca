"""Interventions whose lists a model that learns online may have made."""

from collections.abc import Callable, Container, Iterable
from functools import cached_property

from models.estimators.adaptivity import is_chosen_from_clicks
from rankstream.settings import Settings


class LearnedOnline(Container[str]):
    """Interventions, other than versions, whose lists a learning model may have made.

    Models that learn; those that did, as snapshots show; and no name at all, while an
    experiment combines lists of such models: combined lists name no model.

    Parameters
    ----------
    read
        Gives the models of which snapshots are kept; asked once, if ever.
    """

    def __init__(self, settings: Settings, read: Callable[[], Iterable[str]]) -> None:
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
