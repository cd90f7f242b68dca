"""`rankstream monitor`: experiments, interventions, health and the log, live."""

import argparse

from rankstream.operations.commands.options.ports import port

EPILOG = """examples:
  rankstream monitor                  in the terminal, until Ctrl-C
  rankstream monitor --web            a page at http://127.0.0.1:8087/
  rankstream monitor --once boost     one look, with an experiment in detail
  rankstream monitor --json           one look, as JSON

--once and --json ask Kafka, Redis and the workers' pages once. The exit status is 1
where one of them does not answer, or where the experiment has no verdict; what the
others said is printed all the same.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "experiment", nargs="?", help="the one to show in detail (default: the first)"
    )
    face = parser.add_mutually_exclusive_group()
    face.add_argument("--web", action="store_true", help="serve a page for browsers")
    face.add_argument("--once", action="store_true", help="print one look, and end")
    face.add_argument("--json", action="store_true", help="print one look as JSON")
    parser.add_argument("--host", default="127.0.0.1", help="where the page listens")
    parser.add_argument("--port", type=port, default=8087, help="0 takes any free one")
