"""Sections of the settings: names, types and defaults, and nothing that reads them."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from rankstream.ranking.learner_options import EXAMINATION, TRAINED

Positive = Annotated[int, msgspec.Meta(gt=0)]
Days = Annotated[int, msgspec.Meta(ge=-1)]
PositiveFloat = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Moment = Annotated[int, msgspec.Meta(ge=0)] | Annotated[datetime, msgspec.Meta(tz=True)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of the settings; unknown names are refused."""


class KafkaSettings(Section, frozen=True):
    """The cluster. Passwords come from a variable or a file only.

    `events_days` and `interactions_days` say how long these topics keep a record: 0 as
    long as statistics may have counted it, -1 without end.
    """

    bootstrap: str = "127.0.0.1:9092"
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password_file: str = ""
    input_partitions: Positive = 4
    partitions: Positive = 4
    learner_partitions: Positive = 4
    replication_factor: Positive = 1
    events_days: Days = 0
    interactions_days: Days = 0


class RedisSettings(Section, frozen=True):
    """Where snapshots lie for rankers."""

    url: str = "redis://127.0.0.1:6379/0"
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    keep_versions: Positive = 50


class TimeSettings(Section, frozen=True):
    """Event time, in milliseconds. See `streams.event_time` for the meaning."""

    disorder_ms: Positive = 30_000
    click_window_ms: Positive = 300_000
    remember_ms: Positive = 300_000
    ahead_ms: Positive = 300_000
    idle_ms: Positive = 10_000
    lead_ms: Positive = 1_800_000
    keep_ms: Positive = 90 * 86_400_000


class LimitSettings(Section, frozen=True):
    """What ingestion accepts and what statistics keep apart."""

    documents: Positive = 10_000
    clicks: Positive = 1_000
    click_bytes: Positive = 1 << 20
    candidate_sets: Positive = 64
    interventions: Positive = 256
    exposure_rows: Positive = 16
    lists: Positive = 64


CLICK = "click"
"""The class of every action that the settings do not map."""

MOST_CLASSES = 4
"""Of rewards, `CLICK` among them."""

SPLIT_SHARES = (0.65, 0.15, 0.20)
"""Of the groups: training, validation, selection."""

LEAST_TO_SPLIT = 6
"""Groups, two for each split."""


class StatisticsSettings(Section, frozen=True):
    """What statistics keep apart: groups of users, and classes of what they did.

    `actions` maps actions of click events to classes; `reward` names the class that
    clicks are counted of, wherever a click is spoken of. `split_shares` are those of
    the groups that go into training, validation and selection.
    """

    groups: Annotated[int, msgspec.Meta(ge=2, le=256)] = 20
    reward: str = CLICK
    actions: dict[str, str] = {}
    split_shares: list[float] = msgspec.field(default_factory=lambda: [*SPLIT_SHARES])

    def classes(self) -> tuple[str, ...]:
        """Names of the classes, by number: `CLICK`, then the others sorted."""
        return CLICK, *sorted(set(self.actions.values()) - {CLICK})


class ExcludeSettings(Section, frozen=True):
    """Whose lists and clicks enter no sum and no learner; decided by ingestion.

    `users` are ids of users. A session, else user, that is shown more than
    `lists_per_minute` lists of one partition of `queries` in a minute is a robot for so
    many `minutes`; 0 means that nobody is.
    """

    users: list[str] = []
    lists_per_minute: Annotated[int, msgspec.Meta(ge=0)] = 0
    minutes: Positive = 60


class DeliverySettings(Section, frozen=True):
    """How often stages commit, and how often the fold writes its state."""

    commit_s: PositiveFloat = 0.1
    state_s: PositiveFloat = 5.0
    state_records: Positive = 2_000
    transaction_timeout_ms: Positive = 60_000
    session_timeout_s: PositiveFloat = 10.0
    instance_id: str = ""


class TrainingSettings(Section, frozen=True):
    """When a model is trained from sums, and how; of models that are "trained".

    `after` are numbers of interactions, `first` and `last` the ends of a log scale on
    which so many `interventions` lie evenly, `at` event times (RFC 3339, or epoch
    milliseconds). `loss` is one of `rankstream.training_rules.LOSSES`, or "selected":
    the best of `losses`. `examination` are probabilities by rank, `curve` names the
    model whose newest curve of bias is taken; with neither it is that of the only such
    model, else one that is estimated from the validation groups. `estimator` is one of
    `rankstream.training_rules.ESTIMATORS`; with none the log says which.
    """

    after: list[Positive] = []
    first: Positive = 10_000
    last: Annotated[int, msgspec.Meta(ge=0)] = 0
    interventions: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0
    at: list[Moment] = []
    cutoff: Positive = 10
    epochs: Positive = 50
    batch: Positive = 16
    learning_rate: PositiveFloat = 0.01
    patience: Positive = 5
    loss: str = "truncated-lambda"
    losses: list[str] = []
    least_gain: NotNegative = 1e-4
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    temperature: PositiveFloat = 1.0
    exposure_floor: Share = 0.0
    least_support: NotNegative = 25.0
    most_unsupported: Share = 0.05
    examination: list[PositiveFloat] = []
    curve: str = ""
    estimator: str = ""
    held_out: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.2

    @property
    def at_ms(self) -> list[int]:
        """`at` as epoch milliseconds, in its order."""
        return [
            moment if isinstance(moment, int) else round(moment.timestamp() * 1_000)
            for moment in self.at
        ]

    @property
    def has_schedule(self) -> bool:
        """Whether anything but a request trains the model."""
        return bool(self.after or self.at or self.interventions)


class ModelSettings(Section, frozen=True):
    """A ranker that learns, or a curve: its form, its learner, what that learner needs.

    `feature_names` are in the order of the features, or none. With `log_candidates`
    rankers log the features of all candidates. The `learner` of a model that nothing
    learns online is "trained", that of a curve of bias "examination"; `training` is of
    such models alone, and a curve has no features. `learns_from` names models whose
    lists it learns from, with none its own; with none a curve is of all lists.
    """

    features: Annotated[int, msgspec.Meta(ge=0)] = 0
    feature_names: list[str] = []
    kind: str = "linear"
    hidden: list[int] = []
    normalisation: str = "min-max"
    learner: str = "pdgd"
    learning_rate: PositiveFloat = 0.1
    decay: PositiveFloat = 1.0
    seed: int = 0
    options: dict[str, Any] = {}
    log_candidates: bool = False
    learns_from: list[str] = []
    training: TrainingSettings = TrainingSettings()

    @property
    def is_trained(self) -> bool:
        """Whether its versions come from training alone."""
        return self.learner == TRAINED

    @property
    def is_curve(self) -> bool:
        """Whether it is a curve of bias, which ranks nothing."""
        return self.learner == EXAMINATION

    @property
    def learns_online(self) -> bool:
        """Whether a learner takes each list as it comes."""
        return not (self.is_trained or self.is_curve)

    @property
    def logs_candidates(self) -> bool:
        """Whether rankers log the features of all candidates; training needs them."""
        return self.log_candidates or self.is_trained

    def sources_of(self, name: str) -> list[str]:
        """Names of the models whose lists the model of this name learns from."""
        return self.learns_from or [name]


MAX_RANKERS = 256
"""Of one experiment."""


class ExperimentSettings(Section, frozen=True):
    """Rankers that are compared on users; a change needs the next `epoch`.

    `rankers` names them, each with the model (or MODEL@EPOCH.VERSION) that makes its
    lists, or with nothing where the service makes them. `also` names what else the
    same lists are scored by; see `rankstream.ranking.scored_beside`. `share` is that
    of the sessions that take part, `end_ms` 0 means no end. Intervals are narrowest at
    `planned_impressions`.
    """

    rankers: dict[str, str]
    epoch: Positive = 1
    method: str = "pairwise-preference"
    options: dict[str, Any] = {}
    also: dict[str, dict[str, Any]] = {}
    length: Positive = 10
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    start_ms: Annotated[int, msgspec.Meta(ge=0)] = 0
    end_ms: Annotated[int, msgspec.Meta(ge=0)] = 0
    planned_impressions: Positive = 10_000


class TrainSettings(Section, frozen=True):
    """The role `train`; `memory_mb` bounds what a training holds.

    What is served is valued every `value_every_s`, 0 never.
    """

    memory_mb: Annotated[int, msgspec.Meta(ge=64)] = 512
    value_every_s: NotNegative = 600.0


class SourceSettings(Section, frozen=True):
    """A topic of another system, whose documents the role `adapt` makes events of.

    `topic` is its full name on the same cluster. `format` names an adapter, `options`
    are its. `start` says where reading begins that has never begun.
    """

    topic: str
    format: str
    options: dict[str, Any] = {}
    start: str = "earliest"


class TableSettings(Section, frozen=True):
    """How the files of lists, or those of clicks, of a log are read.

    An empty `format` is that of the log; `columns` are by role, `options` those of the
    format.
    """

    format: str = ""
    columns: dict[str, str] = {}
    options: dict[str, Any] = {}


class FormatSettings(TableSettings, frozen=True):
    """A format of files by a name of one's own, which `--format NAME` takes.

    `queries` and `clicks` are of files that hold one of both, and go before what is
    said of the log. With `session_join` clicks find their lists by session, query and
    time.
    """

    session_join: bool = False
    queries: TableSettings = TableSettings()
    clicks: TableSettings = TableSettings()


class MetricsSettings(Section, frozen=True):
    """The pages of a worker's processes; port 0 means none."""

    host: str = "127.0.0.1"
    port: int = 0


class ServeSettings(Section, frozen=True):
    """`rankstream serve`: where it listens, who may ask, and how much.

    `hosts` are names that clients may ask for, `origins` those of pages whose scripts
    may, `proxies` addresses whose X-Forwarded-For is believed. Tokens are in files, one
    a line. With `browser_clicks` clicks need no token. Rates are requests a second of
    one client; 0 means no limit.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 8088
    hosts: list[str] = []
    origins: list[str] = []
    proxies: list[str] = []
    send_tokens_file: str = ""
    rank_tokens_file: str = ""
    open: bool = False
    browser_clicks: bool = False
    certificate_file: str = ""
    key_file: str = ""
    key_password_file: str = ""
    body_bytes: Annotated[int, msgspec.Meta(ge=1_024, le=64 << 20)] = 4 << 20
    head_bytes: Annotated[int, msgspec.Meta(ge=1_024, le=1 << 20)] = 16 << 10
    events: Annotated[int, msgspec.Meta(gt=0, le=65_536)] = 10_000
    values: Annotated[int, msgspec.Meta(ge=1_000)] = 200_000
    under_way_bytes: Annotated[int, msgspec.Meta(ge=1 << 20)] = 64 << 20
    connections: Positive = 2_000
    head_s: PositiveFloat = 5.0
    body_s: PositiveFloat = 15.0
    answer_s: PositiveFloat = 10.0
    client_rate: NotNegative = 0.0
    click_rate: NotNegative = 20.0


class Settings(Section, frozen=True):
    """Everything that can be set; `file` names the source, and cannot be set."""

    namespace: str = ""
    kafka: KafkaSettings = KafkaSettings()
    redis: RedisSettings = RedisSettings()
    time: TimeSettings = TimeSettings()
    limits: LimitSettings = LimitSettings()
    statistics: StatisticsSettings = StatisticsSettings()
    exclude: ExcludeSettings = ExcludeSettings()
    delivery: DeliverySettings = DeliverySettings()
    metrics: MetricsSettings = MetricsSettings()
    train: TrainSettings = TrainSettings()
    serve: ServeSettings = ServeSettings()
    models: dict[str, ModelSettings] = {}
    experiments: dict[str, ExperimentSettings] = {}
    sources: dict[str, SourceSettings] = {}
    formats: dict[str, FormatSettings] = {}
    file: str = ""

    @property
    def rankers(self) -> dict[str, ModelSettings]:
        """Models that rank, by name."""
        return {name: x for name, x in self.models.items() if not x.is_curve}

    @property
    def curves(self) -> dict[str, ModelSettings]:
        """Models that are curves of bias, by name."""
        return {name: x for name, x in self.models.items() if x.is_curve}
