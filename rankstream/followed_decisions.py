"""The decisions of a rule as a ranker follows them: what changed, and all at once."""

from collections.abc import Sequence

from rankstream.ranking.taken_versions import TakenVersions
from rankstream.redis_store.decision_store import DecisionStore
from rankstream.wire.decision_shards import (
    EMPTY_SHARD,
    DecisionError,
    DecisionShard,
    load_shard,
)
from rankstream.wire.decisions import Manifest, decode_manifest, place_of


class FollowedDecisions:
    """Looks for newer rewrites, and keeps the last good one on any failure.

    Parameters
    ----------
    store
        None is refused: only a store has them.
    name
        Of the rule.
    model
        Whose rankers serve it.
    """

    def __init__(self, store: DecisionStore | None, name: str, model: str) -> None:
        if store is None:
            raise ValueError(f"decisions must come from a store; {name!r} has none")
        self._store = store
        self._name = name
        self._model = model
        self._known = ""
        self._number = 0
        self._shards: dict[bytes, DecisionShard] = {b"": EMPTY_SHARD}

    def look(self, taken: TakenVersions) -> None:
        """Hand over a newer rewrite, whole, where there is one.

        Raises
        ------
        DecisionError
            Where a part of it is damaged or missing; then nothing was taken.
        StoreUnavailable
        """
        if taken.serving is None:
            return
        held = self._store.decisions(self._name, self._known)
        if held is None:
            told = "any more" if self._known else "yet, or by that name"
            raise DecisionError(
                f"Redis must hold decisions {self._name!r}; it holds none {told}"
            )
        if held.manifest is None:
            return
        manifest = self._manifest(held.place, held.manifest)
        if manifest.number <= self._number:
            self._known = held.place
        else:
            taken.take_decisions(manifest, self._fetched(manifest.shards))
            self._known, self._number = held.place, manifest.number
            # What the rewrite before had alone is not needed any more.
            self._shards = {each: self._shards[each] for each in manifest.shards}
            self._shards[b""] = EMPTY_SHARD

    def misuse(self, query_id: str | None, items: Sequence[str] | None) -> ValueError:
        """Why decisions cannot be served: by the policy, where both are given."""
        of = f"decisions {self._name!r}"
        if query_id is None or items is None:
            missing = "query_id" if query_id is None else "items"
            return ValueError(
                f"query_id and items must be given where decisions are served; got no "
                f"{missing}, with {of}: give `rank` both"
            )
        return ValueError(
            f"policy must not be multileave where decisions are served; it is, with "
            f"{of}: rank with another ranker"
        )

    def _manifest(self, place: str, value: bytes) -> Manifest:
        manifest = decode_manifest(value)
        if place_of(value, manifest.number) != place:
            raise DecisionError(
                f"the manifest of {self._name!r} must be that of its pointer, {place}; "
                f"got another, of rewrite {manifest.number}"
            )
        if (manifest.name, manifest.model) != (self._name, self._model):
            raise DecisionError(
                f"decisions must be {self._name!r} of model {self._model!r}; got "
                f"{manifest.name!r:.60} of {manifest.model!r:.60}: name others in the "
                "ranker, or correct their settings"
            )
        return manifest

    def _fetched(self, digests: Sequence[bytes]) -> list[DecisionShard]:
        # Those that were good are kept: after a failure they are not asked for again.
        lacking = [each for each in digests if each not in self._shards]
        for digest, packed in self._store.decision_shards(self._name, lacking):
            self._shards[digest] = load_shard(packed, digest)
        return [self._shards[each] for each in digests]
