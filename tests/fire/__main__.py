"""The pipeline under fire: `python -m tests.fire --events N --kills K --seed S --json`.

Sends events whose outcome it knows, breaks what can break meanwhile, and compares what
came out with what was sent. Exit status 0 only if nothing is lost, double, wrong or
extra, no reader saw anything amiss, and every planned fault was struck under way.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from deploy.process import ServerFailed
from tests.fire.cluster import BREAKS
from tests.fire.configuration import Options
from tests.fire.plans import CLUSTERED, plan_of
from tests.fire.report import as_text
from tests.fire.run import fire

EPILOG = """A broker and a Redis of its own are started, so nothing needs to run.

plans
  full    --kills of them over all roles, one while state is read back, one while a
          snapshot is published and one while a model is trained; the broker away for
          30 s; a second worker that joins, leaves, joins again and is killed; a worker
          paused past its session timeout, and fenced; Redis away for 30 s, and empty
          afterwards; two stops by SIGTERM
  small   the kills, a stop, and the broker away for 8 s
  outages   the broker away for 30, 70 and 110 s, and for 70 s once more, while the
            worker is killed and another started
  leaders   with --brokers 3: kill -9 of a broker for 10 s, three times of one that
            leads, and three times of one that coordinates an open transaction
  moves     a second worker joins and leaves, 15 times
  rolling   a second worker joins, the first leaves and comes back, the second leaves
            and joins again, the first leaves for good; with --from, the first is of
            another build all the time
  phases    --kills amid commits of the roles with a state, at each place in turn:
            begun, its first record sent, all sent, positions sent, asked to end, ended;
            18 kills come to each place of each role once, in the same order always
  none      no fault
  or the faults themselves, in their order, with commas between:
          kill:ROLE  kill:ROLE@restoring  kill:publish@publishing
          kill:train@training  kill:all  kill:ROLE@PHASE (begun, first, last,
          positions, ending, ended: of the next
          transaction of a role with a state: ingest, fold or learn)
          stop:all (SIGTERM: it must end with 0 within --stop-s)
          broker:SECONDS  broker:SECONDS@kill (workers are killed, and started while it
          is away)  leader:SECONDS  coordinator:SECONDS  redis:SECONDS
          first:leave  first:join  second:join  second:leave  second:kill
          pause:fold (of the second worker, which must have joined)
          where ROLE is ingest, fold, learn, publish or train

Each fault has its share of the events: it is struck when that many were sent and the
pipeline has moved since the last one. Events go on until the last one was struck.

Event time is the clock's, under default settings. Only events that must be late wait,
for the watermark. Services are beside whose clients come back from an outage in their
own time. With --fast, event time passes faster than the clock and the disorder is 120
s: what must be late comes in a short run too, but nobody sends unheld. Then nothing is
sent beyond the next fault's share, or 200 events.

A short plan with --fast should end with a kill: behind a stop, or brokers that were
away, sources are held for half a minute, others end meanwhile by `time.idle_ms`, and
what is sent last may truly come late.

figures, all of which must be 0
  lost, double, wrong, extra   by what was sent, by a recount of the log with code of
                               its own, by learning the same log once more, and by
                               training from it again: each run has its snapshot
  dead_letters_missing         or not byte for byte what was sent
  torn, missing, backward      snapshots, for readers that poll through all of it

breaks, to see that it can fail
  position    what lies behind the checkpoint is written again: double
  watermark   the largest time seen instead of the written one: late, lost, extra
  fence       who was voted out may commit: after pause:fold it lives, and once many
              windows have closed, readers refuse what comes twice

Progress goes to standard error. Event times are the seed's, relative to the present;
the moments of the faults are the seed's too, but not what the pipeline does in them.

examples
  python -m tests.fire --events 200000 --kills 20 --seed 1 --json
  python -m tests.fire --events 60000 --plan outages
  python -m tests.fire --events 13000 --plan phases --kills 36 --fast --rate 80
  python -m tests.fire --events 60000 --plan leaders --brokers 3
  python -m tests.fire --events 60000 --plan rolling --from HEAD~50
  python -m tests.fire --events 20000 --kills 4 --seed 1 --plan small --fast
  python -m tests.fire --events 6000 --rate 300 --plan kill:fold --break position
  python -m tests.fire --events 9000 --plan second:join,pause:fold --keep /tmp/fire
"""


def main(words: list[str] | None = None) -> int:
    """Run, and print what came of it."""
    arguments = _arguments(words)
    options = Options(
        arguments.events,
        arguments.kills,
        arguments.seed,
        arguments.plan,
        arguments.rate,
        arguments.broken,
        arguments.poison,
        arguments.fast,
        arguments.services,
        arguments.brokers,
        arguments.commit,
        stop_s=arguments.stop_s,
    )
    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="rankstream-fire-"))
    try:
        result = fire(options, folder)
    except (ServerFailed, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if result["ok"] or options.broken:
        if arguments.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    else:
        sys.stderr.write(f"logs and Kafka's data are left in {folder}\n")
    sys.stdout.write(json.dumps(result) + "\n" if arguments.json else as_text(result))
    return 0 if result["ok"] else 1


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.fire",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    say = parser.add_argument
    say("--events", type=int, default=200_000, metavar="N", help="default 200000")
    say("--kills", type=int, default=20, metavar="K", help="kill -9s, default 20")
    say("--seed", type=int, default=1, metavar="S", help="default 1")
    say("--json", action="store_true", help="one JSON object instead of a table")
    say("--plan", default="full", metavar="PLAN", help="see below; default full")
    say("--rate", type=float, help="events a second; default 20 s for each fault")
    say("--fast", action="store_true", help="event time faster than the clock")
    say("--services", type=int, default=2, metavar="N", help="nobody holds; default 2")
    say("--brokers", type=int, default=1, choices=(1, 3), help="default 1")
    say(
        "--from",
        dest="commit",
        default="",
        metavar="COMMIT",
        help="of the first worker",
    )
    say("--stop-s", type=float, default=10.0, metavar="S", help="a stop; default 10")
    say("--break", dest="broken", choices=BREAKS, default="", help="see below")
    say("--poison", action="store_true", help="far more bad and strange events")
    say(
        "--keep",
        type=Path,
        metavar="DIR",
        help="leave logs and data there",
    )
    arguments = parser.parse_args(words)
    if arguments.events < 1 or arguments.kills < 0:
        parser.error("--events must be at least 1 and --kills at least 0")
    if arguments.keep and arguments.keep.exists() and any(arguments.keep.iterdir()):
        parser.error(f"--keep must name an empty folder or a new one; {arguments.keep}")
    if arguments.poison and not arguments.fast:
        parser.error("--poison needs --fast")
    try:
        plan = plan_of(arguments.plan, arguments.kills, arguments.seed)
    except ValueError as error:
        parser.error(str(error))
    if arguments.brokers == 1 and any(fault.kind in CLUSTERED for fault in plan):
        parser.error("to kill a broker of several there must be some: --brokers 3")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
