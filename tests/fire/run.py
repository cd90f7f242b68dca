"""One run: everything started, broken, drained, stopped and judged."""

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from deploy.process import ServerFailed
from deploy.redis_server import Redis
from producers.brokers.topic_admin import TopicAdmin
from rankstream.operations.recount.log import recount_topics
from rankstream.settings import Settings, load_settings
from rankstream.wire.topics import CLICKS, EVENTS, QUERIES, full_name
from streams.topology import topics_of
from tests.fire.brokers import Brokers
from tests.fire.builds import build_of, create_topics
from tests.fire.cluster import Missed, Worker, restarts
from tests.fire.commit_phases import PHASES
from tests.fire.configuration import NAMESPACE, Options, settings_file
from tests.fire.events import Events, step_of
from tests.fire.faults import Strikes, as_json
from tests.fire.in_process import warm_up
from tests.fire.learning import compare_learned, is_newest_served
from tests.fire.lists import MODEL, TRAINED
from tests.fire.live_events import LiveEvents
from tests.fire.live_service import LiveService
from tests.fire.observer import Observer
from tests.fire.outputs import collected
from tests.fire.plans import plan_of, seconds_of
from tests.fire.poison import PoisonedEvents
from tests.fire.progress import MB, Progress
from tests.fire.readers import Readers
from tests.fire.report import FIGURES
from tests.fire.sender import Sender
from tests.fire.training import (
    ask_for_intervention,
    await_trained,
    compare_trained,
    n_trained,
    settled,
)
from tests.fire.verdict import verdict_of
from tests.session.kernels import compile_trainings

SECONDS_A_FAULT = 20.0
"""Beside those that the fault itself takes."""

DRAIN_S = 600.0
START_S = 600.0
BROKEN_QUIET_S = 40.0
"""A worker that is broken on purpose may never come to the end."""


def fire(options: Options, folder: Path) -> dict[str, Any]:
    """Do it; the result is what is printed."""
    began_s = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    plan = plan_of(options.plan, options.n_kills, options.seed)
    result: dict[str, Any] = {"seed": options.seed, "break": options.broken}
    with services(folder, options.n_brokers) as (broker, redis):
        run = Run(options, folder, broker, redis)
        try:
            failure = run.under_fire(plan)
            result |= run.result()
        finally:
            run.close()
    result["disk_mb"] = _size_mb(folder)
    result["seconds"] = round(time.monotonic() - began_s, 1)
    result["planned_faults"] = [str(fault) for fault in plan]
    result["failure"] = failure
    is_struck = len(result["faults"]) == len(plan) and all(
        fault["is_under_way"] for fault in result["faults"]
    )
    result["ok"] = (
        is_struck and not failure and not any(result[name] for name in FIGURES)
    )
    return result


@contextlib.contextmanager
def services(folder: Path, n_brokers: int = 1) -> Iterator[tuple[Brokers, Redis]]:
    """Brokers and a Redis of our own: others' are not ours to break."""
    broker, redis = Brokers(folder / "kafka", n_brokers), Redis(folder / "redis")
    try:
        broker.start()
        redis.start()
        yield broker, redis
    finally:
        redis.kill()
        broker.kill()


class Run:
    """All that takes part in a run."""

    def __init__(
        self,
        options: Options,
        folder: Path,
        broker: Brokers,
        redis: Redis,
    ) -> None:
        self._options = options
        self._folder = folder
        self._broker, self._redis = broker, redis
        self._progress = Progress()
        self.tell = self._progress.say
        self.seconds_sent = 0.0
        self._stops: dict[str, list[float]] = {}
        config = settings_file(folder, "first", options, broker, redis)
        self.settings: Settings = load_settings(config, {})
        second = settings_file(folder, "second", options, broker, redis)
        commit = options.commit
        plan = plan_of(options.plan, options.n_kills, options.seed)
        is_phased = any(fault.moment in PHASES for fault in plan)
        broken = options.broken or ("phases" if is_phased else "")
        tree = build_of(commit, folder / "build") if commit else None
        if tree is not None:
            create_topics(tree, config)
        admin = TopicAdmin(self.settings, topics_of(self.settings.kafka))
        admin.create()
        admin.close()
        self.workers = {
            "first": Worker("first", config, folder, broken, tree),
            "second": Worker("second", second, folder, broken),
        }
        warm_up(self.settings)
        if TRAINED in self.settings.models:
            compile_trainings()
        self.events = self._drawn_events()
        n_services = 0 if options.is_fast else options.n_services
        self.services = [
            LiveService(number, self.settings, self.events.expected)
            for number in range(1, n_services + 1)
        ]
        self.observer = Observer(self.settings)
        self.readers = Readers(self.settings, MODEL)
        self.sender: Sender | None = None
        self.strikes: Strikes | None = None

    def under_fire(
        self, plan: list[Any], on_sent: Callable[[], None] = lambda: None
    ) -> str:
        """Send and strike, until all is folded; says what went wrong, if anything.

        Parameters
        ----------
        on_sent
            Called once the last event was sent.
        """
        options = self._options
        rate = rate_of(options)
        self.sender = Sender(
            self.events, self.settings, self.observer, rate, self._before_end
        )
        self.strikes = Strikes(
            plan,
            options.n_events,
            self.workers,
            self._broker,
            self._redis,
            self.sender,
            self.observer,
            self.readers,
            options.seed,
            self._progress.say,
            (full_name(NAMESPACE, EVENTS), self.settings.kafka.partitions),
            partial(ask_for_intervention, self.settings),
            options.stop_s,
        )
        self.workers["first"].start()
        self._await_inputs()
        for part in (self.observer, self.readers, self.sender):
            part.start()
        for service in self.services:
            service.start()
        family = self.workers.values()
        self._progress.follow(options.n_events, family, self.sender, self.observer)
        self._progress.say(
            f"{options.n_events:,} events at {rate:,.0f}/s, {len(plan)} faults"
        )
        failure = ""
        try:
            self.strikes.run()
        except Missed as error:
            failure = str(error)
            self._progress.say(failure)
            self.sender.gate = 2 * options.n_events
        if isinstance(self.events, LiveEvents):
            self.events.is_open = False
        # Also then the rest is sent and judged: figures of half a run say nothing.
        left = self._drain(on_sent)
        return failure or left

    def _await_inputs(self) -> None:
        """Until they are read: a gap before the second event would be an outage."""
        for topic in (QUERIES, CLICKS):
            for partition in range(self.settings.kafka.input_partitions):
                line = rf"event=restored partition={topic}\[{partition}\]"
                if not self.workers["first"].wait_for(line, 0, START_S):
                    raise ServerFailed(f"a worker must read {topic}; see its log")

    def result(self) -> dict[str, Any]:
        """Stop the workers and judge."""
        must_train = self._must_train()
        if TRAINED in self.settings.models and not self._options.broken:
            settled(self.settings, self.events.expected, must_train=must_train)
        # A worker that is broken on purpose may never publish the last one.
        is_served = bool(self._options.broken) or all(
            is_newest_served(self.settings, model)
            for model in (MODEL, TRAINED)
            if model in self.settings.models
        )
        self._progress.stop()
        for name, worker in self.workers.items():
            if worker.is_running:
                status, seconds = worker.stop()
                self._stops[name] = [status, seconds]
        self.readers.stop()
        self.observer.stop()
        self._progress.say("judging")
        found = collected(self.settings)
        sent, missing = verdict_of(self.events.expected, found)
        again = recount_topics(self.settings)
        learned = compare_learned(self.settings, MODEL)
        trained = compare_trained(
            self.settings, self.events.expected, self._folder, must_train=must_train
        )
        strikes, readers = self.strikes, self.readers
        judged = sent, again, learned, trained
        return {
            **{
                kind: sum(getattr(each, kind) for each in judged)
                for kind in ("lost", "double", "wrong", "extra")
            },
            "dead_letters_missing": missing,
            "torn": readers.torn,
            "missing": readers.missing + (not is_served),
            "backward": readers.backward,
            "events": self._n_sent(),
            "events_of_services": sum(each.n_sent for each in self.services),
            "outcomes": self.events.expected.outcomes(),
            "dead_letters": len(self.events.expected.letters),
            "hostile_kinds_unsent": sorted(self.events.unsent),
            "by_what_was_sent": sent.as_dict(),
            "by_recount": again.as_dict(),
            "by_learning_again": learned.as_dict(),
            "by_training_again": trained.as_dict(),
            "trainings": n_trained(self.settings),
            "reads": readers.reads,
            "unavailable": readers.unavailable,
            "versions_read": len(readers.versions),
            "longest_pause_s": round(self.observer.longest_pause_s, 1),
            "peak_memory_mb": self._progress.peak_mb,
            "log_lines": sum(w.said().count("\n") for w in self.workers.values()),
            "exits": restarts(list(self.workers.values())),
            "stops": self._stops,
            "faults": as_json(strikes) if strikes else [],
        }

    def _n_sent(self) -> int:
        sender = self.sender.n_sent if self.sender else 0
        return sender + sum(each.n_sent for each in self.services)

    def _before_end(self) -> None:
        for service in self.services:
            service.finish()
        if self._must_train():
            await_trained(self.settings, self.events.expected)

    def _must_train(self) -> bool:
        # What is broken may leave nothing to be trained from, and so does a record of
        # twenty hours ahead.
        is_whole = not self._options.broken and not self._options.is_poisoned
        return is_whole and TRAINED in self.settings.models

    def _drawn_events(self) -> Events:
        options, now_ms = self._options, int(time.time() * 1_000)
        seed, n_events = options.seed, options.n_events
        partitions = self.settings.kafka.partitions
        if not options.is_fast:
            live = LiveEvents(seed, n_events, partitions, rate_of(options))
            live.is_open = options.plan != "none"
            return live
        rate = options.rate
        start_ms = now_ms - n_events * step_of(n_events, rate) - 3_600_000
        if options.is_poisoned:
            poisoned = PoisonedEvents(
                seed, start_ms, now_ms, n_events, partitions, rate=rate
            )
            poisoned.wall_ms = now_ms
            return poisoned
        return Events(seed, start_ms, now_ms, n_events, partitions, rate=rate)

    def close(self) -> None:
        """End whatever still runs."""
        self._progress.stop()
        for worker in self.workers.values():
            worker.kill()
        if self.sender is not None:
            self.sender.stop()

    def _drain(self, on_sent: Callable[[], None]) -> str:
        """Wait until all is folded."""
        is_broken = bool(self._options.broken)
        deadline = time.monotonic() + DRAIN_S
        sender = self.sender
        if sender is None:
            return "nothing was sent"
        began_s = time.monotonic()
        while not (sender.is_done and self.observer.is_drained(learned=not is_broken)):
            if sender.is_done and not self.seconds_sent:
                self.seconds_sent = time.monotonic() - began_s
                on_sent()
            failures = [sender.failure, self.observer.failure]
            failures += [service.failure for service in self.services]
            if any(failures):
                return repr(next(filter(None, failures)))
            if self.observer.quiet_s < 10 and not is_broken:
                deadline = time.monotonic() + DRAIN_S
            is_stuck = is_broken and self.observer.quiet_s > BROKEN_QUIET_S
            if is_stuck or time.monotonic() > deadline:
                return "the pipeline must come to the end of its logs; it did not"
            time.sleep(0.1)
        return ""


def rate_of(options: Options) -> float:
    """Events a second: what was asked for, else so that the faults find their place."""
    plan = plan_of(options.plan, options.n_kills, options.seed)
    seconds = SECONDS_A_FAULT * (len(plan) + 1) + seconds_of(plan)
    return options.rate or max(50.0, options.n_events / seconds)


def _size_mb(folder: Path) -> int:
    files = (each for each in folder.rglob("*") if each.is_file())
    # Kafka's indexes are mostly holes.
    return sum(512 * each.stat().st_blocks for each in files) // MB
