"""`rankstream doctor`: what is wrong here, with Kafka, topics, Redis and clocks."""

import argparse

EPILOG = """examples:
  rankstream doctor --config shop.toml
  rankstream doctor --json | jq '.findings[] | select(.state != "ok")'

Each line says ok, warns or fails, which part it is of, and what to do:
  installation  versions, the compiled core, packages of the extras
  kafka         each broker under the address that it gives; transactions
  topics        as `rankstream topics check`, with how long they keep records; losses
                that an operator accepted
  redis         version, role, what it evicts, whether it can save
  clocks        of this machine against Kafka's and Redis'

Nothing is written, and nobody is waited for.

exit status: 0 where nothing fails, else 1
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
