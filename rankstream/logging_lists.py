"""The ranker's side of an experiment whose lists a logging policy draws.

    policies = LoggingLists(Ranker("boost-lists", store=store))
    running = experiments.of("boost", unit=session, now_ms=now)
    if running is not None:
        drawn = policies.draw(running, {"old": old_ids, "new": new_ids}, features,
                              query_id="shoes", session=session)
        queries.send(policies.query_event(running, drawn, at_ms=now))

Versions of a model are the policies, so each change of them is an intervention, and is
published, followed and taken back as any other version.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy.typing as npt

from rankstream.experiments import Drawn, Running
from rankstream.ranker import Ranker
from rankstream.ranking.draws import ranked_items
from rankstream.ranking.logged_sets import LoggedSets
from rankstream.ranking.logging_options import LoggingOptions
from rankstream.ranking.logging_policy import differences_of, floored, policy_features
from rankstream.ranking.ranked_list import Ranking


class PolicyList(NamedTuple):
    """The list of one impression, and the version of the policy that drew it."""

    drawn: Drawn
    ranking: Ranking
    items: list[str]


class LoggingLists:
    """Draws lists by the newest version of a policy, above the floor.

    Parameters
    ----------
    ranker
        Of the model that the option `model` of the experiment names; `follow` it.
    """

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker
        self._logged = LoggedSets()

    def draw(
        self,
        running: Running,
        rankings: Mapping[str, Sequence[str]],
        features: npt.NDArray[Any],
        *,
        query_id: str,
        session: str | None = None,
        impression_id: str | None = None,
    ) -> PolicyList:
        """Draw the list that an impression shows.

        Where rankers do not differ in what is looked at, no list tells anything: it is
        drawn as any other, and credits nobody.

        Parameters
        ----------
        rankings
            Of both rankers, best first; one may be empty, not both.
        features : [n_items, n_features]
            Of all that was ranked, in sorted order of the ids; of no columns where the
            model has none but those of the comparison.

        Raises
        ------
        NoSnapshot
            Before the first version.
        ValueError
            Where rankings or features do not fit the experiment or the model.
        """
        options = LoggingOptions.of(running.settings)
        if options.model != self._ranker.model:
            raise ValueError(
                f"the ranker must be of {options.model!r}, the model that draws lists "
                f"of {running.name!r}; got {self._ranker.model!r}"
            )
        running.check_rankers(rankings)
        length, theta = running.settings.length, options.examination
        # What a ranker repeats counts once, as where the list is drawn.
        own = {name: list(dict.fromkeys(rankings[name])) for name in rankings}
        items = ranked_items([*own.values()])
        if not items or len(features) != len(items):
            raise ValueError(
                "features must have a row of each ranked item, at least one; got "
                f"{len(features)} for {len(items)} items"
            )
        differences = differences_of(own, theta, length)
        ranking = self._ranker.rank(
            policy_features(features, own, differences),
            cutoff=length, policy="deterministic", session=session,
        )  # fmt: skip
        scores = floored(ranking.scores, differences, options.floor / theta[0])
        drawn = running.combine(
            own,
            query_id=query_id,
            impression_id=impression_id,
            scores=dict(zip(items, scores.tolist(), strict=True)),
        )
        return PolicyList(drawn, ranking, items)

    def query_event(
        self, running: Running, listed: PolicyList, *, at_ms: int, **fields: Any
    ) -> bytes:
        """The event to send to `queries`: the list, its policy, and what policies see.

        What they see of the candidates is logged as a model's features are: the first
        time that a query has them, and hourly again.

        Parameters
        ----------
        fields
            As those of `Running.query_event`.

        Raises
        ------
        ValueError
            As `Running.query_event`.
        """
        drawn, ranking, items = listed
        named: dict[str, Any] = {"model": ranking.model, "version": ranking.version}
        said = ("session", "canary", "intervention")
        named |= {
            each: getattr(ranking, each) for each in said if getattr(ranking, each)
        }
        raw = ranking.raw
        if raw is not None and self._logged.is_due(
            drawn.query_id, items, ranking.features_hash, at_ms
        ):
            packed = base64.b64encode(raw.astype("<f4").tobytes())
            named["candidate_features"] = packed.decode("ascii")
            named["features_hash"] = ranking.features_hash.hex()
        given = {**named, "candidates": items, **fields}
        return running.query_event(drawn, at_ms=at_ms, **given)
