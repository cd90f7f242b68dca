"""Events through the pipeline on one broker, over an empty agent of stock Faust.

One run brings up its own broker and Redis, writes each log beforehand, and times the
stage that reads it by the resume positions of its commits; what the first of them
covers is start-up, and does not count, nor do runs before the broker is warm or over a
log that is too short. A throughput counts only if an independent recount of the log
agrees with what came out. Ours and the rival run in turns, ours in a namespace of its
own each time; latency and restart are measured once.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from deploy.process import ServerFailed
from rankstream.lab.benchmarks.harness import (
    Figure,
    Lasting,
    Run,
    cost_figure,
    in_turns,
    new_figure,
    throughput_figure,
)
from rankstream.lab.benchmarks.memory import list_figure, open_figure
from rankstream.lab.benchmarks.pipeline import (
    BESIDE_STREAMS,
    chosen_figures,
    needs_services,
)
from rankstream.lab.benchmarks.pipeline.bed import Bed, running_bed, say
from rankstream.lab.benchmarks.pipeline.beside_rival import (
    InputRuns,
    end_to_end_figures,
)
from rankstream.lab.benchmarks.pipeline.first_start import start_figure
from rankstream.lab.benchmarks.pipeline.local import compared_figure, local_figure
from rankstream.lab.benchmarks.pipeline.logs import (
    KeptLog,
    delete_topics,
    part_of,
    preload,
)
from rankstream.lab.benchmarks.pipeline.meter import metered
from rankstream.lab.benchmarks.pipeline.paced import latencies_s, restart
from rankstream.lab.benchmarks.pipeline.recount import Recount
from rankstream.lab.benchmarks.pipeline.rival.build import rival_command
from rankstream.lab.benchmarks.pipeline.roles import (
    end_to_end_run,
    ingestion_run,
    learning_run,
    roles_figure,
    scaling_figure,
)
from rankstream.lab.benchmarks.pipeline.sizes import FULL, QUICK, Sizes, sized
from rankstream.lab.benchmarks.pipeline.state import (
    placed_state_figure,
    query_figure,
    state_figure,
)
from rankstream.lab.benchmarks.pipeline.stock import StockRuns
from rankstream.lab.benchmarks.pipeline.trickle import Pace, trickle_figure
from rankstream.lab.benchmarks.workload import Workload, canonical_records
from rankstream.wire.events import DETERMINISTIC, LOGGED, PLACKETT_LUCE
from rankstream.wire.topics import EVENTS, STATISTICS, full_name, state_topic

N_PARTITIONS = 4
N_FEATURES = 46

RESTART_QUERIES = 55_000
"""So many queries have about 110,000 keys: each has a scope and a candidate set."""


GOALS = {LOGGED: (15.0, 10.0), DETERMINISTIC: (18.0, 12.0), PLACKETT_LUCE: (6.0, 4.0)}
"""Goal and floor of the fold by policy, over the rival."""


ROLES_NAMES = {
    "events": "JSON events, one a record, to statistics and snapshots, all roles on "
    f"({N_FEATURES} features)",
    "interactions": "interactions that wait, through the learn role alone "
    f"({N_FEATURES} features)",
}
"""Of the figures of several roles, by what they count."""


def measure(
    *, quick: bool = False, figures: Iterable[str] = (), **options: Any
) -> list[Figure]:
    """The named figures, else the short ones; progress on standard error.

    Parameters
    ----------
    options
        Sizes that are not as usual; see `sized`.

    Raises
    ------
    ValueError
        Where there is no figure of a name, or a size is not over 0.
    """
    chosen = chosen_figures(figures)
    sizes = sized(QUICK if quick else FULL, options)
    left_out = _left_out(chosen)
    chosen = [name for name in chosen if name not in left_out]
    found = list(left_out.values())
    if not chosen:
        return found
    needed = needs_services(chosen)
    with running_bed(needs_services=needed, is_quick=quick) as bed:
        session = Session(bed, sizes)
        for name in chosen:
            made = MAKERS[name](session)
            found += made if isinstance(made, list) else [made]
    return found


def _left_out(names: Iterable[str]) -> dict[str, Figure]:
    """Figures whose rival cannot be run here, each with the reason."""
    wanted = [name for name in names if name in BESIDE_STREAMS]
    if not wanted:
        return {}
    try:
        rival_command()
    except ServerFailed as reason:
        say(f"{', '.join(wanted)}: left out; {reason}")
        return {
            name: new_figure(
                f"{name}: left out; {reason}",
                None,
                "",
                None,
                None,
                faults=[f"{reason}"],
            )
            for name in wanted
        }
    return {}


class Session:
    """What the figures of one call share.

    Parameters
    ----------
    bed
        Its services need not run for `local_figure`.
    """

    def __init__(self, bed: Bed, sizes: Sizes) -> None:
        self.bed = bed
        self.sizes = sizes
        self._placed_rate: float | None = None
        self._stock: Lasting | None = None

    def fold_figure(self, policy: int) -> Figure:
        """Canonical events through the fold role."""
        is_placed = policy == PLACKETT_LUCE
        pairs = self._in_turns(self._fold_runs(policy))
        kind = {LOGGED: "logged exposures", DETERMINISTIC: "deterministic"}
        placed = (
            f"plackett-luce, 40 candidates, {N_FEATURES} features, new scores each s"
        )
        name = (
            "join, statistics, interactions: "
            f"{kind.get(policy, placed)} ({pairs[0][0].event_bytes:.0f}-byte events)"
        )
        goal, floor = GOALS[policy]
        figure = throughput_figure(name, pairs, goal=goal, floor=floor)
        if is_placed:
            self._placed_rate = figure["value"]
        return figure

    def ingestion_figure(self) -> Figure:
        """JSON events through the ingest role."""
        pairs = self._in_turns(
            Lasting(
                lambda n: ingestion_run(self.bed, n, N_FEATURES),
                self.sizes.ingestion,
                self.sizes.least_s,
            )
        )
        n_bytes = pairs[0][0].event_bytes
        name = f"ingestion, one JSON event a record ({n_bytes:.0f} bytes)"
        return throughput_figure(name, pairs, goal=4.0, floor=2.2)

    def roles_figure(self, run: Callable[[Bed, int, int], Run], what: str) -> Figure:
        """JSON events through several roles, or one role alone; once."""
        runs = Lasting(
            lambda n: run(self.bed, n, N_FEATURES),
            self.sizes.roles,
            self.sizes.least_s,
        )
        runs.warm_up()
        return roles_figure(ROLES_NAMES[what], f"{what}/s", runs())

    def local_figure(self) -> Figure:
        """The in-process replay over decoding the same records."""
        plan = Workload(self.sizes.local, DETERMINISTIC, n_partitions=N_PARTITIONS)
        return local_figure(plan, self.sizes.repeats)

    def half_speed(self) -> float:
        """Events a second that the fold of Plackett-Luce lists takes with ease."""
        if self._placed_rate is None:
            runs = self._fold_runs(PLACKETT_LUCE)
            runs.warm_up()
            self._placed_rate = runs().rate
        return self._placed_rate / 2

    def end_to_end_figures(self) -> list[Figure]:
        """JSON events to counted statistics, and what an event costs all processes."""
        sizes = self.sizes
        runs = InputRuns(self.bed, N_PARTITIONS, sizes.threads)
        ours, rival = (
            Lasting(run, sizes.input, sizes.least_s) for run in (runs.ours, runs.rival)
        )
        rival.warm_up()
        ours.warm_up()
        return end_to_end_figures(in_turns(ours, rival, sizes.turns), sizes.threads)

    def trickle_figures(self, rates: Iterable[int]) -> list[Figure]:
        """What so many events a second cost, on each number of partitions."""
        sizes = self.sizes
        return [
            trickle_figure(
                self.bed,
                Pace(per_second, width, sizes.settle_s, sizes.trickle_s),
                sizes.threads,
                sizes.trickle_turns,
            )
            for per_second in rates
            for width in sizes.widths
        ]

    def _in_turns(self, ours: Lasting) -> list[tuple[Run, Run]]:
        """Ours and the empty agent, once both are warm and their logs long enough."""
        if self._stock is None:
            stock = StockRuns(self.bed)
            self._stock = Lasting(stock, self.sizes.rival, self.sizes.least_s)
            self._stock.warm_up()
        ours.warm_up()
        return in_turns(ours, self._stock, self.sizes.repeats)

    def _fold_runs(self, policy: int) -> Lasting:
        is_placed = policy == PLACKETT_LUCE
        plan = Workload(
            0,
            policy,
            n_candidates=40 if is_placed else 20,
            n_features=N_FEATURES if is_placed else 0,
            n_partitions=N_PARTITIONS,
        )
        n_first = self.sizes.placed if is_placed else self.sizes.fold
        return Lasting(FoldRuns(self.bed, plan), n_first, self.sizes.least_s)


class FoldRuns:
    """Runs of the fold role; those of one length have the same log.

    Parameters
    ----------
    plan
        Its number of impressions is that of each run.
    """

    def __init__(self, bed: Bed, plan: Workload) -> None:
        self._bed = bed
        self._plan = plan
        self._log: KeptLog | None = None
        self._recount = Recount()

    def __call__(self, n_impressions: int) -> Run:
        """One run in a namespace of its own, whose topics go with it."""
        log, recount = self._log_of(n_impressions), self._recount
        settings = self._bed.settings(N_FEATURES)
        topic = full_name(settings.namespace, EVENTS)
        preload(settings.kafka.bootstrap, ((topic, *record) for record in log))
        about = f"policy {self._plan.policy}"
        say(
            f"{about}: {recount.n_events:,} events of {recount.bytes_per_event:.0f} "
            "bytes written"
        )
        meter, commits = metered(self._bed, settings, "fold")
        part = part_of(commits[state_topic("fold")], recount.events_up_to)
        wrong = recount.disagreements(settings)
        run = meter.measured(part, recount.bytes_per_event, wrong)
        say(f"{about}: {run.rate:,.0f} events/s; {run.told}")
        say(f"{about}: recount: {wrong or 'agrees'}")
        delete_topics(settings)
        return run

    def _log_of(self, n_impressions: int) -> KeptLog:
        if self._log is None or n_impressions != self._plan.n_impressions:
            self._plan = replace(self._plan, n_impressions=n_impressions)
            self._recount = Recount()
            self._log = KeptLog(self._bed.folder / "events.log", self._counted())
        return self._log

    def _counted(self) -> Iterator[tuple[int, bytes]]:
        """The records of a log, counted as they pass."""
        rng = np.random.default_rng(1)
        for partition, value, _ in canonical_records(self._plan, rng):
            self._recount.take(partition, value)
            yield partition, value


def latency_figure(bed: Bed, sizes: Sizes, per_second: float) -> Figure:
    """From the record that closes a window to the snapshot in Redis."""
    plan = Workload(
        0, PLACKETT_LUCE, n_candidates=40, n_features=N_FEATURES,
        n_partitions=N_PARTITIONS,
    )  # fmt: skip
    settings = bed.settings(N_FEATURES)
    found = latencies_s(bed, settings, plan, per_second, sizes.paced_s)
    p50, p99 = np.percentile(found, [50, 99])
    say(f"latency: p50 {p50:.3f} s, p99 {p99:.3f} s over {len(found)} records")
    name = (
        "record past the window to snapshot in Redis, p99, plackett-luce at "
        f"{per_second:,.0f} events/s"
    )
    return cost_figure(name, [float(p99)], "s", before=1.0, goal=1.0, floor=2.5)


def restart_figure(bed: Bed, sizes: Sizes, per_second: float) -> Figure:
    """From kill -9 of the fold role until it folds what is new, events coming in."""
    n_enough = int(per_second * (sizes.restart_s + 120.0))
    plan = Workload(
        n_enough, DETERMINISTIC, n_queries=RESTART_QUERIES, n_partitions=N_PARTITIONS
    )
    settings = bed.settings(N_FEATURES)
    found = restart(bed, settings, plan, per_second, sizes.restart_s)
    megabytes = f"{found.n_bytes / 1e6:,.0f} MB"
    say(
        f"restart: {found.seconds:.2f} s, {found.n_keys:,} keys, "
        f"{found.n_records:,} records read back, {megabytes} with all that is dead"
    )
    name = (
        f"kill -9 after {sizes.restart_s:,.0f} s at {per_second:,.0f} events/s to the "
        f"first fold of the last partition; {found.n_keys:,} keys in {STATISTICS} and "
        f"state, {found.n_records / max(found.n_keys, 1):.1f} records read back a key, "
        f"{megabytes}"
    )
    figure = cost_figure(name, [found.seconds], "s", before=9.2, goal=2.5, floor=3.5)
    return figure | {"ratio": None} if found.wrong else figure


MAKERS: dict[str, Callable[[Session], Figure | list[Figure]]] = {
    "logged": lambda session: session.fold_figure(LOGGED),
    "deterministic": lambda session: session.fold_figure(DETERMINISTIC),
    "plackett-luce": lambda session: session.fold_figure(PLACKETT_LUCE),
    "ingestion": Session.ingestion_figure,
    "in-process": Session.local_figure,
    "compared": lambda session: compared_figure(
        session.sizes.compared, session.sizes.repeats
    ),
    "state-logged": lambda session: state_figure(LOGGED, session.sizes.state),
    "state-deterministic": lambda session: state_figure(
        DETERMINISTIC, session.sizes.state
    ),
    "state-plackett-luce": lambda session: placed_state_figure(
        session.sizes.placed, N_FEATURES
    ),
    "open-memory": lambda session: open_figure(
        session.sizes.memory, session.sizes.repeats
    ),
    "list-memory": lambda session: list_figure(
        session.sizes.memory, session.sizes.repeats
    ),
    "query-state": lambda session: query_figure(session.sizes.queries),
    "first-start": lambda session: start_figure(session.sizes.repeats),
    "latency": lambda session: latency_figure(
        session.bed, session.sizes, session.half_speed()
    ),
    "restart": lambda session: restart_figure(
        session.bed, session.sizes, session.half_speed()
    ),
    "end-to-end": Session.end_to_end_figures,
    "trickle": lambda session: session.trickle_figures(session.sizes.rates),
    "idle": lambda session: session.trickle_figures([0]),
    "all-roles": lambda session: session.roles_figure(end_to_end_run, "events"),
    "learning": lambda session: session.roles_figure(learning_run, "interactions"),
    "scaling": lambda session: scaling_figure(
        session.bed, session.sizes.roles, N_FEATURES
    ),
}
"""What measures each figure."""
