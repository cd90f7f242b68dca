"""One model as its interactions are folded into it, in the order of their log."""

import base64
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from models.learners.learner import Learner, TrainingExample
from models.learners.registry import fixed_ranker_of, learner_of
from rankstream.configuration.former import recorded_model
from rankstream.configuration.models import ONLINE
from rankstream.ranking.fixed_ranges import with_ranges
from rankstream.ranking.scoring import normalised, shifted
from rankstream.settings import ModelSettings, SettingsError
from rankstream.wire.bounds import MODEL_BYTES
from rankstream.wire.envelope import TREES, Snapshot, encode_snapshot, features_hash
from rankstream.wire.events import POLICIES, Interaction
from rankstream.wire.models.forests import NO_TREES, pack_forest
from rankstream.wire.topics import SNAPSHOTS
from streams.stage import LogRefused

Features = npt.NDArray[np.float32]


class ModelChanged(LogRefused):
    """A model's settings are not those that its versions were learned under.

    Operator action: restore them, or name the new model differently.
    """


class ModelFold:
    """One model: its learner, its version, and which of its versions are published.

    Parameters
    ----------
    n_groups
        `statistics.groups`: lists are of a group of users.
    """

    def __init__(self, name: str, settings: ModelSettings, n_groups: int = 1) -> None:
        self.name = name
        self.version = 0
        self.created_ms = 0
        self.skipped = 0
        self.sources: dict[int, int] = {}
        self.published: deque[int] = deque()
        try:
            make = learner_of if settings.versions == ONLINE else fixed_ranker_of
            self.learner: Learner = make(_layered(settings))
        except ValueError as error:
            raise SettingsError(f"models.{name}: {error}") from error
        self._settings = settings
        self._form_served = settings.forms[0]
        self._n_groups = n_groups
        self._groups = frozenset(settings.learns_from_groups)
        self._features_hash = features_hash(settings.feature_names or settings.features)
        first = self.snapshot()
        self._moves = (
            (np.frombuffer(first.shift, "<f4"), np.frombuffer(first.scale, "<f4"))
            if first.scale
            else (None, None)
        )
        n_bytes = len(encode_snapshot(first))
        if n_bytes > MODEL_BYTES:
            # Weights alone are bounded by the settings' rules, before a worker starts.
            raise SettingsError(
                f"models.{name} must fit a record of {SNAPSHOTS}; a snapshot of it "
                f"takes {n_bytes} bytes: take fewer hidden units, or a shorter name"
            )

    def take(
        self, interactions: Sequence[Interaction], source: int, last_sequence: int
    ) -> None:
        """Fold interactions of a record; what the learner cannot use is skipped.

        Parameters
        ----------
        source, last_sequence
            The partition of `events` that they are from, and the number that the last
            one has there.
        """
        self.version += len(interactions)
        self.sources[source] = last_sequence
        self.created_ms = interactions[-1].impression.at_ms
        examples = [example for one in interactions if (example := self._example(one))]
        n_left_out = self.learner.learn_all(examples)
        self.skipped += len(interactions) - len(examples) + n_left_out

    def _example(self, interaction: Interaction) -> TrainingExample | None:
        """What the learner is shown of an interaction, None if it cannot use it."""
        impression = interaction.impression
        if (
            POLICIES[impression.policy] not in self.learner.policies
            or impression.n_features != self._settings.features
            or (self._groups and impression.unit % self._n_groups not in self._groups)
        ):
            return None
        try:
            return example_of(interaction, self._normalised, self._features_hash)
        except (ValueError, OverflowError):
            # What was logged beside the list contradicts it.
            return None

    def _normalised(self, features: Features) -> Features:
        moved = shifted(features, *self._moves)
        return normalised(moved, self._settings.normalises_queries)

    def snapshot(self) -> Snapshot:
        """The model as it is: a function of the log alone, whenever it is asked for."""
        made = Snapshot(
            model=self.name,
            epoch=0,
            version=self.version,
            parent=max(0, self.version - 1),
            created_ms=self.created_ms,
            kind=self._form_served.kind,
            hidden=self._settings.hidden,
            normalisation=self._settings.normalises_queries,
            n_features=self._settings.features,
            features_hash=self._features_hash,
            sources=sorted(self.sources.items()),
            updates=self.learner.updates,
            weights=self._weights(),
            feature_names=self._settings.feature_names,
            groups=sorted(self._groups) if self.version else [],
            log_candidates=self._settings.logs_candidates,
        )
        ranges = self._settings.feature_ranges
        return with_ranges(made, ranges) if ranges else made

    def _weights(self) -> bytes:
        if self._settings.kind == TREES:
            return pack_forest(NO_TREES)
        return self.learner.weights().astype("<f4").tobytes()

    def state(self) -> list[Any]:
        """What `restore` takes."""
        return [
            self.version,
            self.created_ms,
            self.skipped,
            sorted(self.sources.items()),
            list(self.published),
            self._form(),
            self.learner.state(),
        ]

    def restore(self, state: list[Any]) -> None:
        """Take back a state.

        Raises
        ------
        ModelChanged
            Where the settings are not those that it was learned under.
        """
        self.version, self.created_ms, self.skipped, sources, *rest = state
        published, form, learner = rest
        if form != self._form():
            raise ModelChanged(
                f"models.{self.name} must stay as it was learned, as each version is a "
                f"function of the log and of these settings; {self._changed(form)}: "
                "restore them, or dump the log and replay it into another --namespace, "
                "where the new one folds it from its beginning under the same name"
            )
        self.sources = dict(sources)
        self.published = deque(published)
        self.learner.restore(learner)

    def _form(self) -> dict[str, Any]:
        form = recorded_model(self._settings)
        # It changes what rankers log, not what is learned of it; how a model is trained
        # is in the record of each run.
        del form["log_candidates"], form["training"]
        if self._settings.versions != ONLINE:
            del form["learns_from"]
        for name in ("feature_names", "learns_from"):
            # Earlier releases knew neither.
            if not form.get(name):
                form.pop(name, None)
        return form

    def _changed(self, form: dict[str, Any]) -> str:
        """Each setting that differs, as it was learned under and as it is."""
        was, now = (
            {"feature_names": [], "learns_from": [], "learns_from_groups": [], **each}
            for each in (form, self._form())
        )
        return ", ".join(
            _told(name, was.get(name), now.get(name))
            for name in sorted(was.keys() | now.keys())
            if was.get(name) != now.get(name)
        )


def _layered(settings: ModelSettings) -> ModelSettings:
    """A model that learners know: nothing is learned of trees, so 0 stands for none."""
    if not settings.grows_trees:
        return settings
    return msgspec.structs.replace(settings, kind="linear")


def sources_in(state: list[Any], name: str) -> list[str]:
    """Models whose lists a model learned from, by a state of it."""
    return state[5].get("learns_from") or [name]


def _told(name: str, was: Any, now: Any) -> str:
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        # Of hundreds of names the first that differs says most.
        place = next(i for i, (a, b) in enumerate(zip(was, now, strict=True)) if a != b)
        return f"{name} had {was[place]!r} at {place + 1}, has {now[place]!r}"
    return f"{name} was {was!r:.200}, is {now!r:.200}"


def example_of(
    interaction: Interaction,
    as_seen: Callable[[Features], Features] = lambda features: features,
    list_hash: bytes = b"",
) -> TrainingExample:
    """An interaction as learners read it.

    Parameters
    ----------
    as_seen
        Features [n_candidates, n_features] as a service gave them, as the model sees
        them: so they are logged of candidates.
    list_hash
        Of the model; features of candidates by another list are left out.

    Raises
    ------
    ValueError
        Where what it logged beside the list contradicts the list.
    """
    impression = interaction.impression
    shown = np.frombuffer(impression.shown, "<u2").astype(np.int64)
    clicks = np.zeros(len(shown), np.bool_)
    for mark in interaction.clicks:
        clicks[mark.position - 1] = True
    example = TrainingExample(
        np.frombuffer(impression.scores, "<f4"),
        shown,
        clicks,
        _rows(impression.features, impression.n_features),
        impression.seed,
    )
    if not impression.extra:
        return example
    extra = msgspec.msgpack.decode(impression.extra)
    if "ranks" in extra:
        ranks = np.frombuffer(base64.b64decode(extra["ranks"]), "<u2")
        example = example._replace(ranks=ranks.reshape(len(shown), -1).astype(np.int64))
    if "assignments" in extra:
        example = example._replace(teams=np.array(extra["assignments"], np.int64))
    named = extra.get("features_hash")
    if "candidate_features" in extra and named in (None, list_hash.hex()):
        raw = base64.b64decode(extra["candidate_features"])
        candidates = _rows(raw, impression.n_features)
        if named is not None:
            candidates = as_seen(candidates)
        example = example._replace(candidates=candidates)
    return example


def _rows(raw: bytes, n_features: int) -> npt.NDArray[np.float32]:
    return np.frombuffer(raw, "<f4").reshape(-1, n_features)
