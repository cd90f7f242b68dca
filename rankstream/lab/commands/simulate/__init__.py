"""`rankstream simulate`: closed loop of users, a ranker, and the learner behind it.

On Kafka the ranker reads Redis and a running worker learns; `--local` runs the same
folds in this process.
"""

import argparse
from pathlib import Path

from models.click_models.registry import NAMES
from rankstream.operations.commands.options.kinds import BY_THE_LOG

N_INTERVENTIONS = 3
"""Of trees, which learn at interventions alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "Without --local the ranker reads Redis, and events go to Kafka. A worker\n"
        "must run then, with [models.NAME] of as many features as the data.\n\n"
        "examples:\n"
        "  rankstream simulate --local --data MQ2008 --fold 1 --users perfect\n"
        "  rankstream simulate --config shop.toml --model search --data train.txt\n"
        "  rankstream simulate --local --data MQ2008 --users navigational "
        "--interventions 3\n"
        "\n"
        "A model that is trained changes at interventions. On Kafka the\n"
        "role `train` makes them by itself, when [models.NAME.training] says. Ctrl-C\n"
        "ends the simulation, and prints what there is.\n"
    )
    parser.add_argument(
        "--data", type=Path, help="LETOR file, or folder of folds (default: generated)"
    )
    parser.add_argument(
        "--fold",
        type=int,
        default=1,
        help="which cross-validation split of a folder, from 1",
    )
    parser.add_argument(
        "--users",
        choices=NAMES,
        default="perfect",
        metavar="NAME",
        help=f"who clicks: {', '.join(NAMES)} (default: perfect)",
    )
    parser.add_argument(
        "--published-stop",
        action="store_true",
        help="users may stop without a click, as in the published code",
    )
    parser.add_argument(
        "--impressions", type=int, default=10_000, help="default: 10,000"
    )
    parser.add_argument("--model", default="simulated", help="name of the model")
    parser.add_argument(
        "--kind",
        choices=BY_THE_LOG,
        help="of a model that no settings have; trees are trained at interventions, "
        f"{N_INTERVENTIONS} if --interventions does not say how many; with selected "
        "the better of linear and trees is taken at each (default: linear)",
    )
    parser.add_argument("--cutoff", type=int, default=10, help="length of the lists")
    parser.add_argument(
        "--max-behind",
        type=int,
        default=200,
        help="wait while the served model is more impressions behind",
    )
    parser.add_argument(
        "--interventions",
        type=int,
        metavar="N",
        help="train the model N times, evenly on a log scale from a tenth of the "
        "lists on; with settings of the model, these say when",
    )
    parser.add_argument(
        "--no-follow", action="store_true", help="serve the first version only"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of all random draws")
    parser.add_argument(
        "--local",
        action="store_true",
        help="all in this process, without Kafka and Redis",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
