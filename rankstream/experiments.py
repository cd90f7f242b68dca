"""The ranker's side of a comparison: who takes part, and what to send.

    experiments = Experiments(store_of(settings))
    experiments.follow()
    running = experiments.of("boost", unit=session, now_ms=now)
    if running is not None:
        drawn = running.combine({"old": old_ids, "new": new_ids}, query_id="shoes")
        queries.send(running.query_event(drawn, at_ms=now, session=session))

A configuration lies in Redis under its name. It has an epoch; a change needs a new one.
What Redis lost is not removed: it runs on until Redis says that it was.
"""

import base64
import hashlib
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from rankstream.experiment_records import ExperimentRecord, Store, stored_records
from rankstream.ranking.combining import combine, draw_seed, list_exposures
from rankstream.ranking.logging_policy import logged_scores, policy_fields
from rankstream.settings import ExperimentSettings
from rankstream.wire.routing import (
    normalised_query,
    route_of_query,
    routed_impression_id,
)

REFRESH_S = 0.5

_to_json = msgspec.json.Encoder().encode


class Drawn(NamedTuple):
    """The list of one impression, and what has to be logged with it.

    `shown`, `assignments` and `rankings` are those of `rankstream.ranking.combining`.
    Show it once: a list that is shown again is another impression, with a draw of its
    own.
    """

    shown: list[str]
    assignments: list[int] | None
    rankings: dict[str, list[str]]
    query_id: str
    impression_id: str
    seed: int
    scores: dict[str, float] | None = None


@dataclass(frozen=True)
class Running:
    """An experiment as a service takes part in it."""

    name: str
    settings: ExperimentSettings

    def includes(self, unit: str, now_ms: int) -> bool:
        """Whether this session, else user, is part of it now.

        Decided by a hash of experiment and unit. So every server gives the same
        answer, and each experiment has its own share of the traffic, in all epochs.
        """
        if now_ms < self.settings.start_ms:
            return False
        if self.settings.end_ms and now_ms >= self.settings.end_ms:
            return False
        named = f"{self.name}\x1f{unit}".encode()
        digest = hashlib.blake2b(named, digest_size=8).digest()
        return int.from_bytes(digest, "big") < self.settings.share * 2.0**64

    def combine(
        self,
        rankings: Mapping[str, Sequence[str]],
        *,
        query_id: str,
        impression_id: str | None = None,
        scores: Mapping[str, float] | None = None,
    ) -> Drawn:
        """Draw the list that an impression shows.

        Parameters
        ----------
        rankings
            Each ranker's own list, best first; one may be empty.
        query_id
            The query that was asked.
        impression_id
            Unique to this list; its draw follows from it. None: a new one, which goes
            to the partition of the query.
        scores
            Of the method `logging-policy` alone: what its policy draws by, of every
            ranked item; see `rankstream.logging_lists`. None: all are as likely.

        Raises
        ------
        ValueError
            Where the rankings are not those of the experiment's rankers, the id is
            empty, or scores are not those of the ranked items.
        """
        self.check_rankers(rankings)
        if impression_id == "":
            raise ValueError("impression_id must not be empty; leave it out for a new")
        named = new_impression_id(query_id) if impression_id is None else impression_id
        seed = draw_seed(self.name, self.settings.epoch, named)
        drawn_by = logged_scores(self.settings.method, rankings, scores)
        found = combine(
            self.settings.method,
            rankings,
            self.settings.length,
            seed=seed,
            options=self._options(drawn_by),
        )
        return Drawn(*found, query_id, named, seed, drawn_by)

    def check_rankers(self, rankings: Mapping[str, Sequence[str]]) -> None:
        """Refuse rankings of others than the experiment's rankers.

        Raises
        ------
        ValueError
            With the names of those that it has.
        """
        if set(rankings) != set(self.settings.rankers):
            raise ValueError(
                f"rankings must be those of {sorted(self.settings.rankers)}; "
                f"got {sorted(rankings)}"
            )

    def _options(self, scores: Mapping[str, float] | None) -> dict[str, Any]:
        """Of a draw."""
        return {
            **self.settings.options,
            **({} if scores is None else {"scores": scores}),
        }

    def page(self, drawn: Drawn, number: int) -> list[str]:
        """A later page of a list: the same draw goes on.

        Parameters
        ----------
        drawn
            The first page, as `combine` gave it.
        number
            From 2 on.

        Returns
        -------
        list
            Empty beyond the last item: then nothing was shown, and nothing is sent.
            Else send it with `page_event`.

        Raises
        ------
        ValueError
            Where the first page is not what its seed draws, or the number below 2.
        """
        if number < 2:
            raise ValueError(f"later pages must be numbered from 2; got {number}")
        length = self.settings.length
        whole = combine(
            self.settings.method,
            drawn.rankings,
            number * length,
            seed=drawn.seed,
            options=self._options(drawn.scores),
        ).shown
        if whole[:length] != drawn.shown:
            raise ValueError("a page must go on with the list that the seed drew")
        return whole[(number - 1) * length :]

    def page_event(
        self, shown: Sequence[str], *, query_id: str, at_ms: int, **fields: Any
    ) -> bytes:
        """The event of a later page: an impression of its own that compares nobody.

        Whoever turns the page has seen the first one. Credit for later pages would
        reward rankers for what they moved there. So the event names no experiment.
        """
        return _to_json(_event_of(list(shown), query_id, at_ms, fields))

    def query_event(self, drawn: Drawn, *, at_ms: int, **fields: Any) -> bytes:
        """The event to send to `queries`; it holds all that any method needs later.

        With `candidates` it also holds exact exposures where a closed form is known,
        so that the statistics of the list keep their propensities.

        Parameters
        ----------
        fields
            Further fields of the event: candidates ... and `session`, else `user`. A
            winner rests on sessions: without any, none is named.

        Raises
        ------
        ValueError
            Where a field would name another impression, query or seed than was drawn,
            or candidates of a logging policy are not what it draws from.
        """
        if "seed" in fields:
            raise ValueError(
                "seed cannot be given: it follows from the impression id; leave it out"
            )
        own = {"impression_id", "query_id"} & set(fields)
        if own:
            raise ValueError(
                f"{sorted(own)} must be those of the drawn list: give them to `combine`"
            )
        named = {**fields, "impression_id": drawn.impression_id, "seed": drawn.seed}
        event = {
            **_event_of(drawn.shown, drawn.query_id, at_ms, named),
            "experiment": {
                "id": self.name,
                "epoch": self.settings.epoch,
                "method": self.settings.method,
            },
            "rankings": drawn.rankings,
        }
        if drawn.assignments is not None:
            event["assignments"] = drawn.assignments
        if drawn.scores is not None:
            return _to_json(event | policy_fields(drawn.scores, fields))
        candidates = fields.get("candidates")
        if candidates and drawn.shown and "exposures" not in fields:
            exposures = list_exposures(
                self.settings.method,
                drawn.rankings,
                candidates,
                self.settings.length,
            )
            if exposures is not None:
                of_places = exposures[:, : len(drawn.shown)]
                packed = base64.b64encode(of_places.astype("<f4").tobytes())
                event |= {"policy": "logged", "exposures": packed.decode("ascii")}
        return _to_json(event)


def new_impression_id(query_id: str) -> str:
    """A random id that carries the route of its query, as clicks need it."""
    route = route_of_query(normalised_query(query_id))
    return routed_impression_id(secrets.token_hex(16), route)


def _event_of(
    shown: list[str], query_id: str, at_ms: int, fields: dict[str, Any]
) -> dict[str, Any]:
    """What every event of a combined list holds.

    A new id, where none is given, goes to the partition of the query.
    """
    given = dict(fields)
    if given.get("impression_id") is None:
        given["impression_id"] = new_impression_id(query_id)
    return {
        "query_id": query_id,
        "at_ms": at_ms,
        "policy": "multileave",
        "shown": shown,
        **given,
    }


@dataclass
class Experiments:
    """The experiments that run, from the store; keeps the last good ones.

    An epoch that was removed does not come back, though a store of an older time, such
    as a replica that took over, may say that it runs.

    Parameters
    ----------
    store
        Where they are read.

    Attributes
    ----------
    failures
        Looks at the store that found something wrong.
    trouble
        What was wrong at the last look; empty where nothing was. The last good
        experiments go on meanwhile.
    """

    store: Store
    failures: int = 0
    trouble: str = ""
    _running: dict[str, Running] = field(default_factory=dict)
    _ended: dict[str, int] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _follower: threading.Thread | None = None

    def refresh(self) -> bool:
        """Look once; False where the store was silent, held nonsense or lost some."""
        try:
            records, refused = stored_records(self.store)
        except RuntimeError as error:
            return self._is_well([str(error)])
        self._note_removals(records)
        found, troubles = {}, [f"{name!r}: {why}" for name, why in refused.items()]
        for name, held in self._running.items():
            epoch, record = held.settings.epoch, records.get(name)
            if record is None or record.epoch < epoch:
                # Epochs only rise, and what was removed is said to be.
                found[name] = held
            if name not in refused and name in found:
                there = "none" if record is None else f"epoch {record.epoch}"
                troubles.append(
                    f"experiment {name!r} must be in the store in epoch {epoch} or "
                    f"later, or as removed; got {there}: epoch {epoch} goes on"
                )
        for name, record in records.items():
            if name in found or record.settings is None:
                continue
            last = self._ended.get(name, 0)
            if record.epoch > last:
                found[name] = Running(name, record.settings)
            else:
                troubles.append(
                    f"experiment {name!r} must not be in the store in epoch "
                    f"{record.epoch}, as epoch {last} was removed: it does not run"
                )
        self._running = found
        return self._is_well(troubles)

    def _note_removals(self, records: Mapping[str, ExperimentRecord]) -> None:
        for name, record in records.items():
            if record.settings is None:
                self._ended[name] = max(record.epoch, self._ended.get(name, 0))

    def _is_well(self, troubles: list[str]) -> bool:
        self.trouble = "; ".join(troubles)
        self.failures += bool(troubles)
        return not troubles

    def follow(self) -> None:
        """Look again and again in a thread of its own, until `close`."""
        if self._follower is None:
            self.refresh()
            self._follower = threading.Thread(
                target=self._follow, name="follow-experiments", daemon=True
            )
            self._follower.start()

    def close(self) -> None:
        """Stop following."""
        self._stop.set()
        if self._follower is not None:
            self._follower.join(timeout=5.0)

    def of(self, name: str, *, unit: str, now_ms: int) -> Running | None:
        """The experiment, if it runs and this session, else user, is part of it."""
        running = self._running.get(name)
        if running is None or not running.includes(unit, now_ms):
            return None
        return running

    def is_known(self, name: str) -> bool:
        """Whether there is an experiment of this name, whoever is part of it."""
        return name in self._running

    def _follow(self) -> None:
        while not self._stop.wait(REFRESH_S):
            self.refresh()
