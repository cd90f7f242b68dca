"""`rankstream evaluate`: what policies would be worth, before anybody sees them."""

import argparse
import json
import math
import sys
from pathlib import Path

from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import CURVE_REMEDY
from models.estimators.choice import NO_CURVE as UNTOLD
from models.estimators.registry import ESTIMATORS
from producers.stop_signal import Stop
from rankstream.operations.commands.evaluate_question import (
    WEIGHTS,
    Asked,
    Policies,
    Stopped,
    files_named,
    policies_of,
    question_of,
)
from rankstream.operations.commands.evaluate_source import source_of
from rankstream.operations.commands.evaluate_tables import (
    Answer,
    as_builtins,
    print_answer,
)
from rankstream.operations.commands.format_options import add_folded_format
from rankstream.operations.commands.newest_curve import HELP, OPTION
from rankstream.operations.commands.statistics_asked import nothing
from rankstream.operations.commands.statistics_curve import curve_told
from rankstream.operations.commands.statistics_tables import left_label
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.settings import load_settings, with_namespace
from streams.estimation.evaluation import LOGGED, Coverage, Evaluation, evaluated
from streams.estimation.mixed_scopes import marked_columns
from streams.statistics.reader import Statistics

SUMMARY = "what policies would be worth, before anybody sees them"

STOPPED = 130

NO_CURVE = f"{UNTOLD}: {CURVE_REMEDY}"

EPILOG = """examples:
  rankstream evaluate search@1.120000          a version, beside what was logged
  rankstream evaluate search new=rankings.jsonl --against search
  rankstream evaluate rankings.jsonl --local run/ --examination 1,0.6,0.4
  rankstream evaluate rankings.jsonl --log events/ --format jsonl --json

A file has a line for each query:
  {"query_id": "shoes", "items": ["a", "b"]}            always in this order
  {"query_id": "shoes", "items": ["a", "b"], "scores": [1.5, 0.2], "temperature": 1}
                                                        drawn by Plackett-Luce

Nothing is shown to anybody, and nothing is written. docs/evaluate.md says how to
read the table.

exit status: 0 if policies were valued, 1 if there is nothing to value them on
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "policies",
        nargs="+",
        metavar="POLICY",
        help="MODEL (the version that is served), MODEL@EPOCH.VERSION, or a file of "
        "rankings, FILE.jsonl or NAME=FILE.jsonl",
    )
    parser.add_argument(
        "--against",
        default=LOGGED,
        metavar="POLICY",
        help="whom the others are compared with: one of them by its name in the table, "
        "or what was logged",
    )
    parser.add_argument(
        "--estimator",
        choices=ESTIMATORS,
        help="of the values of items (docs/estimators.md; default: intervention-aware "
        "where policies were fixed before the clicks, intervention-oblivious where "
        "they were not, affine-shown where nobody knows them)",
    )
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default="clicks",
        help="what an item at a rank is worth",
    )
    curve = parser.add_mutually_exclusive_group()
    curve.add_argument(
        "--examination",
        metavar="CURVE",
        type=_curve,
        help="the curve of bias: probabilities of looking at ranks 1, 2, ..., such as "
        "1,0.6,0.4, or a JSON file with them or with alpha and beta; if not given that "
        "of models.NAME.training, else the newest of --curve, else estimated from "
        "clicks of the validation groups",
    )
    curve.add_argument(OPTION, metavar="NAME", help=HELP)
    parser.add_argument(
        "--ranks",
        type=_ranks,
        default=0,
        metavar="N",
        help="how many items policies show, at most as many as lists of the same "
        "candidates did (default: so many)",
    )
    parser.add_argument(
        "--temperature",
        type=_temperature,
        default=1.0,
        metavar="T",
        help="what scores of models are divided by before lists are drawn; 0: the best "
        "always goes first",
    )
    parser.add_argument(
        "--classes",
        action="store_true",
        help="items whose ids are equal before # count as one, over all queries "
        "(docs/estimators.md)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--local",
        type=Path,
        metavar="DIR",
        help="what `replay --local --out DIR` wrote, instead of Kafka; it has no "
        "features, so rankings alone can be valued",
    )
    source.add_argument(
        "--log",
        nargs="+",
        type=Path,
        metavar="FILE",
        dest="paths",
        help="events in files, or a dump, folded here, instead of Kafka",
    )
    add_folded_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Value them; 1 if there is nothing to value them on, 130 if stopped."""
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    # Before a whole log is read.
    rankings = files_named(arguments.policies)
    try:
        with Stop() as stop:
            source = source_of(arguments, settings, stop)
            if source is None:
                raise Stopped
            statistics = source.statistics
            if statistics.is_empty():
                return nothing(left_label(statistics) or "there are no statistics yet")
            policies = policies_of(arguments, source, rankings)
            asked = question_of(arguments, settings, source, policies, stop)
            if asked is None:
                return nothing(NO_CURVE)
            found = _evaluated(statistics, policies, asked, stop)
    except Stopped:
        sys.stderr.write("stopped\n")
        return STOPPED
    if found.comparison is None:
        return nothing(_uncovered(found.coverage))
    answer = Answer(asked.question, arguments.weights, asked.basis, found)
    if arguments.json:
        sys.stdout.write(json.dumps(as_builtins(answer)) + "\n")
    else:
        print_answer(answer)
    return 0


def _evaluated(
    statistics: Statistics, policies: Policies, asked: Asked, stop: Stop
) -> Evaluation:
    n_queries = len({name.query for name in statistics.scopes()})
    with ProgressLine("valuing", total=n_queries, unit="queries") as line:

        def on_queries(n: int) -> None:
            line.show(n)
            if stop.asked:
                raise Stopped

        chunks = marked_columns(statistics.batches(), statistics.column_reader())
        return evaluated(chunks, policies.targets, asked.question, on_queries)


def _uncovered(coverage: Coverage) -> str:
    if not coverage.lacking and coverage.n_left_out:
        return (
            "the estimator that --estimator names must have lists of known policies; "
            f"all {counted(coverage.n_left_out, 'list')} are of unknown ones, or lie "
            "beside such: leave --estimator out"
        )
    if not coverage.lacking:
        return "no list of a known policy was counted in the groups that may be used"
    lacking = ", ".join(coverage.lacking)
    return (
        f"none of {counted(coverage.n_all, 'list')} has candidates that all policies "
        f"rank; {lacking} say nothing of them: name queries as `rankstream statistics "
        "list` does and items as `rankstream statistics show` does, and have models "
        "that log features of candidates"
    )


def _curve(told: str) -> BiasCurve:
    try:
        return curve_told(told)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _ranks(told: str) -> int:
    if not told.lstrip("+-").isdecimal() or int(told) < 1:
        raise argparse.ArgumentTypeError(
            f"must be a whole number, 1 or more; got {told}"
        )
    return int(told)


def _temperature(told: str) -> float:
    try:
        found = float(told)
    except ValueError:
        found = math.nan
    if not 0.0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number, 0 or more; got {told}")
    return found
