"""The pipeline under fire: `python -m tests.fire --events N --kills K --seed S --json`.

Sends events whose outcome it knows, breaks what can break meanwhile, and compares what
came out with what was sent. Exit status 0 only if nothing is lost, double, wrong or
extra, no reader saw anything amiss, and every planned fault was struck under way.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path

from tests.fire.cluster import BREAKS
from tests.fire.run import Options, fire

EXAMPLES = """examples:
  python -m tests.fire --events 200000 --kills 20 --seed 1 --json
  python -m tests.fire --events 20000 --kills 4 --seed 1 --plan small
  python -m tests.fire --events 8000 --plan kill:fold,kill:fold --break marker
"""


def main(words: list[str] | None = None) -> int:
    """Run, and print what came of it."""
    parser = argparse.ArgumentParser(
        "python -m tests.fire",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="nothing but the result")
    parser.add_argument("--plan", default="full", help="full, small, none, or faults")
    parser.add_argument("--rate", type=float, help="events a second")
    parser.add_argument("--break", dest="broken", choices=BREAKS, default="")
    parser.add_argument("--poison", action="store_true", help="far more of the bad")
    parser.add_argument("--keep", type=Path, help="keep logs in this folder")
    arguments = parser.parse_args(words)
    options = Options(
        arguments.events,
        arguments.kills,
        arguments.seed,
        arguments.plan,
        arguments.rate,
        arguments.broken,
        arguments.poison,
    )
    with contextlib.ExitStack() as stack:
        folder = arguments.keep
        if folder is None:
            made = tempfile.TemporaryDirectory(prefix="rankstream-fire-")
            folder = Path(stack.enter_context(made))
        result = fire(options, folder, tell=not arguments.json)
    sys.stdout.write(json.dumps(result, indent=None if arguments.json else 2) + "\n")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
