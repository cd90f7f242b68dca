"""What requests and answers hold; the description of the API is made of these."""

from typing import Annotated, Any, Literal

import msgspec

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Time = Annotated[int, msgspec.Meta(ge=0)]


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request; unknown fields are refused."""


class RankItem(Request, frozen=True, kw_only=True, gc=False):
    """A candidate: its id, and its features in the order of the model.

    `features` are numbers, or base64 of little-endian float32.
    """

    id: Id
    features: list[float] | str


class Listing(Request, frozen=True, kw_only=True):
    """What every list that is asked for may say of itself.

    `impression_id` is new where it is absent; who asks again after a failure gives the
    same. `at_ms` is the server's time where it is absent. `user`, `session` and
    `attributes` are those of the query event.
    """

    query_id: Text
    impression_id: Id | None = None
    at_ms: Time | None = None
    user: str | None = None
    session: str | None = None
    attributes: dict[str, Any] | None = None


class RankRequest(Listing, frozen=True, kw_only=True, gc=False):
    """Rank these items with a model.

    `k` is the length of the list. `policy` is what the model's learner needs where it
    is absent. With `exposures` the answer says how likely each item was at each rank.
    Without `log` no event is sent, and the list counts nowhere.
    """

    model: Id
    items: Annotated[list[RankItem], msgspec.Meta(min_length=1, max_length=100_000)]
    k: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 10
    policy: Literal["plackett-luce", "deterministic", "tail-shuffle"] | None = None
    exposures: bool = False
    log: bool = True


class RankAnswer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A list: `ranking` holds ids in the order in which they are to be shown.

    `exposures` has a row for each item of the request, and in it P(item at rank) for
    each rank of the list. `intervention` is what statistics keep the list under.
    `canary` names the stage of the canary in force for the session, if any.
    """

    impression_id: str
    query_id: str
    ranking: list[str]
    model: str
    version: int
    intervention: str
    policy: str
    exposures: list[list[float]] | None = None
    canary: str | None = None


class CombineRequest(Listing, frozen=True, kw_only=True):
    """Combine the rankers' own lists into one, as an experiment has it.

    `rankings` has the ids of each ranker's list, best first. `unit` decides who takes
    part: the session, else the user, where it is absent. With `candidates` the event
    holds what the list's propensities follow from. Without `log` no event is sent.
    """

    experiment: Id
    rankings: dict[str, list[Id]]
    unit: Text | None = None
    candidates: list[Id] | None = None
    log: bool = True


class CombineAnswer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The combined list, where the unit takes part; else `takes_part` is false.

    Who does not take part is shown what is shown without the experiment.
    """

    takes_part: bool
    impression_id: str = ""
    query_id: str = ""
    ranking: list[str] = []
    epoch: int = 0
    method: str = ""


class ClickRequest(Request, frozen=True, kw_only=True):
    """A user acted on an item of a list; without `at_ms` it happened now.

    Without `event_id` a request that is repeated is another click.
    """

    impression_id: Id
    query_id: str | None = None
    item_id: str | None = None
    position: int | None = None
    action: str = "click"
    event_id: str | None = None
    at_ms: Time | None = None


class EventsAnswer(msgspec.Struct, kw_only=True):
    """How many events Kafka has now, and how many documents became none.

    `dead_letters` are documents that were sent on as such, with `refused=dead-letter`.
    """

    queries: int
    clicks: int
    ignored: int = 0
    dead_letters: int = 0


class Rejected(msgspec.Struct, kw_only=True):
    """A document that cannot be taken: its place in the request, and why."""

    index: int
    code: str
    reason: str


class ProblemAnswer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Why a request is not answered with success (application/problem+json)."""

    title: str
    status: int
    code: str
    detail: str
    rejected: list[Rejected] = []
