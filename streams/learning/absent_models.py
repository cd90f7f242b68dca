"""Models that have a state but are not in the settings, and what they miss meanwhile.

A model that is put back goes on only if no list of it came while it was out. Else its
next version would not be the one that the log gives, and would still have its number.
"""

from collections.abc import Iterable

from rankstream.wire.schemas import LogRefused


class ModelMissed(LogRefused):
    """A model was out of the settings while lists of it came, and is back.

    Operator action: take it out again, or learn it from the log's beginning in another
    namespace.
    """


class AbsentModels:
    """Versions of models that the settings do not name, and how many lists each missed.

    Names are those of models that once were set: no event can add one.
    """

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}
        self._learners: dict[str, list[str]] = {}
        self._n_missed: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._versions)

    def miss(self, shown_by: str, n_interactions: int) -> None:
        """Hear of interactions of a model, which those that learn from it miss."""
        for name in self._learners.get(shown_by, ()):
            self._n_missed[name] = self._n_missed.get(name, 0) + n_interactions

    def keep(self, name: str, version: int, sources: Iterable[str]) -> None:
        """Hear of the state of a model that the settings do not name.

        Parameters
        ----------
        sources
            Models whose lists it learned from.
        """
        self._versions[name] = version
        for source in sources:
            self._learners.setdefault(source, []).append(name)

    def versions(self) -> dict[str, int]:
        """The last version of each, by name."""
        return dict(self._versions)

    def state(self) -> list[tuple[str, int]]:
        """What `restore` takes."""
        return sorted(self._n_missed.items())

    def restore(self, state: Iterable[tuple[str, int]]) -> None:
        """Take back how many each missed."""
        self._n_missed = dict(state)

    def check(self, name: str, version: int) -> None:
        """Refuse a model that is back, where it missed any of its interactions.

        Raises
        ------
        ModelMissed
            With how many, and what to do.
        """
        n_missed = self._n_missed.get(name, 0)
        if n_missed:
            raise ModelMissed(
                f"models.{name} must have folded every interaction of its own; "
                f"{n_missed} came while it was not in the settings, after version "
                f"{version}: take it out again, or dump the log and replay it into "
                "another --namespace, where it is learned from the beginning"
            )
