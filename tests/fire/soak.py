"""Even work for an hour, and whether anything grows.

    python -m tests.fire.soak --minutes 60 --rate 50 --train-every 60 --json

Sends events whose outcome it knows, without any fault, and samples each minute what
every role takes (resident memory, descriptors, threads), what it holds, and how many
lines are logged. It fits straight lines to what came after a warm-up. Exit status 0
only if every line is flat, nobody started again, and nothing is lost, double, wrong or
extra.

Event time passes faster than the clock, and nothing is kept for long: what leaves by
the calendar leaves within the warm-up. So what is held must be as much at the end.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from deploy.process import free_port
from streams.worker_roles import ROLES
from tests.fire.configuration import Options
from tests.fire.report import FIGURES
from tests.fire.run import Run, services
from tests.fire.samples import Samples, Series
from tests.fire.slopes import Slope, slope_of
from tests.fire.training import Asking

BOUNDS = {"rss_kb": 100.0, "descriptors": 0.05, "threads": 0.05}
"""What a minute may bring. The leak that was found once brought 3,300 kB."""

LINES_BOUND = 0.05
"""Lines a minute, by which those of each minute may rise."""

WARM_UP_SHARE = 0.25


def soak(  # noqa: PLR0913  all that a run depends on
    minutes: float,
    rate: float,
    seed: int,
    warm_up: float,
    every_s: float,
    folder: Path,
    *,
    train_every_s: float | None = None,
) -> dict[str, Any]:
    """Do it; the result is what is printed.

    Parameters
    ----------
    minutes, warm_up
        How long events are sent, and how much of that is left out of the slopes.
    every_s
        From one sample to the next.
    train_every_s
        From one request for a training to the next; None asks for none.
    """
    port = free_port(len(ROLES))
    options = Options(
        max(1, int(minutes * 60 * rate)), 0, seed, "none", rate, is_fast=True,
        settings=f"[metrics]\nport = {port}\n",
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with services(folder) as (broker, redis):
        run = Run(options, folder, broker, redis)
        samples = Samples(run.workers["first"], port, every_s, run.tell)
        asking = Asking(run.settings, train_every_s)

        def on_sent() -> None:
            samples.stop()
            asking.stop()

        try:
            samples.start()
            asking.start()
            failure = run.under_fire([], on_sent=on_sent)
            on_sent()
            result = run.result()
        finally:
            on_sent()
            run.close()
        said = run.workers["first"].said()
    return judged(samples, warm_up) | {
        "minutes": minutes,
        "warm_up_minutes": warm_up,
        "rate": rate,
        "events": result["events"],
        "trainings_asked_for": asking.n_asked,
        "trainings": result["trainings"],
        "seconds_sent": round(run.seconds_sent, 1),
        "failure": failure,
        **{name: result[name] for name in FIGURES},
        "exits": result["exits"],
        "restarted": dict(+samples.restarted),
        "stops": result["stops"],
        "differences": {
            judge: result[judge]["differences"]
            for judge in ("by_what_was_sent", "by_recount", "by_learning_again")
        },
        "longest_pause_s": result["longest_pause_s"],
        "lines_by_event": dict(
            Counter(re.findall(r"\bevent=(\S+)", said)).most_common()
        ),
    }


def judged(samples: Samples, warm_up: float) -> dict[str, Any]:
    """The slope of everything that was sampled, and which of them are not flat."""
    slopes: dict[str, dict[str, Any]] = {}
    not_flat = []

    def add(role: str, name: str, series: Series, bound: float | None) -> None:
        slope = slope_of(series.minutes, series.values, warm_up=warm_up)
        found = slope.as_dict()
        if bound is not None:
            found["verdict"] = slope.verdict(bound)
            if found["verdict"] != "flat":
                not_flat.append(f"{role} {name}: {_told(slope)}, {found['verdict']}")
        slopes.setdefault(role, {})[name] = found

    for (role, name), series in samples.taken.items():
        add(role, name, series, BOUNDS[name])
    add("worker", "lines_a_sample", samples.lines, LINES_BOUND)
    for (role, name), series in samples.state.items():
        add(role, name, series, None)
    return {"slopes": slopes, "not_flat": not_flat, "samples": _values(samples)}


def _values(samples: Samples) -> dict[str, Any]:
    kept = {
        f"{role} {name}": series.values
        for found in (samples.taken, samples.state)
        for (role, name), series in found.items()
    }
    minutes = [round(minute, 2) for minute in samples.lines.minutes]
    return {"minutes": minutes, "lines": samples.lines.values, **kept}


def _told(slope: Slope) -> str:
    return f"{slope.per_minute:+.2f} a minute, standard error {slope.error:.2f}"


def is_ok(result: dict[str, Any]) -> bool:
    """Whether all is as it must be."""
    return not (
        result["not_flat"]
        or result["failure"]
        or result["exits"]
        or result["restarted"]
        or any(result[name] for name in FIGURES)
    )


def as_text(result: dict[str, Any]) -> str:
    """For people."""
    lines = [
        f"{result['events']:,} events in {result['seconds_sent'] / 60:.1f} minutes, "
        f"the first {result['warm_up_minutes']:g} left out; "
        f"{result['trainings']} trainings",
        "",
        f"{'role':<10}{'':<24}{'from':>12}{'to':>12}{'a minute':>12}{'error':>10}",
    ]
    for role, by_name in result["slopes"].items():
        for name, one in by_name.items():
            numbers = [one[key] for key in ("first", "last", "per_minute", "error")]
            if None in numbers:
                continue
            first, last, rise, error = numbers
            lines.append(
                f"{role:<10}{name:<32}{first:>12,.1f}{last:>12,.1f}"
                f"{rise:>+11,.3f}{error:>10,.3f}  {one.get('verdict', '')}".rstrip()
            )
    lines += ["", *(f"{name:<24}{result[name]:,}" for name in FIGURES), ""]
    lines += [f"not flat: {each}" for each in result["not_flat"]]
    lines += [f"failure: {result['failure']}"] if result["failure"] else []
    return "\n".join([*lines, "flat" if result["ok"] else "NOT AS IT MUST BE"]) + "\n"


def main(words: list[str] | None = None) -> int:
    """Parse the options, do it, print the result."""
    parser = argparse.ArgumentParser(
        "python -m tests.fire.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    say = parser.add_argument
    say("--minutes", type=float, default=60.0, metavar="M", help="default 60")
    say("--rate", type=float, default=50.0, metavar="R", help="events a second, 50")
    say("--seed", type=int, default=1, metavar="S", help="default 1")
    say("--warm-up", type=float, metavar="M", help="default a quarter of --minutes")
    say("--every", type=float, default=60.0, metavar="S", help="seconds a sample, 60")
    say("--json", action="store_true", help="one JSON object instead of a table")
    say("--train-every", type=float, metavar="S", help="ask for a training so often")
    arguments = parser.parse_args(words)
    train_every_s = arguments.train_every
    given = arguments.minutes, arguments.rate, arguments.every, train_every_s or 1.0
    if min(given) <= 0 or train_every_s == 0:
        parser.error("--minutes, --rate, --every and --train-every must be above 0")
    warm_up = arguments.warm_up
    if warm_up is None:
        warm_up = WARM_UP_SHARE * arguments.minutes
    folder = Path(tempfile.mkdtemp(prefix="rankstream-soak-"))
    result = soak(
        arguments.minutes, arguments.rate, arguments.seed, warm_up,
        arguments.every, folder, train_every_s=train_every_s,
    )  # fmt: skip
    result["ok"] = is_ok(result)
    if result["ok"]:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        sys.stderr.write(f"logs and Kafka's data are left in {folder}\n")
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else as_text(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
