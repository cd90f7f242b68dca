"""A training says its loss, and of several which others there were."""

import msgspec

from rankstream.operations.terminal.words import loss_line
from rankstream.wire.models.training import LossTried
from tests.rankstream.training_topic import RUN

FIRST = LossTried("arp-linear", 2, 1.25, 0.1, 0.0, 0.0)
SECOND = LossTried("dcg-linear", 3, 1.2, 0.11, 0.05, 0.0123)
WANTED = {"training": {"losses": ["dcg-linear", "arp-linear", "lambda-rank"]}}


def test_a_loss_that_was_set_stands_alone() -> None:
    """Nothing was chosen."""
    assert loss_line(RUN) == "truncated-lambda"


def test_others_are_told_with_how_far_they_are_behind() -> None:
    """And what came to nothing, by the settings."""
    run = msgspec.structs.replace(
        RUN, loss="arp-linear", losses=[SECOND, FIRST], settings=WANTED
    )
    assert loss_line(run) == (
        "arp-linear, the best of 2 by unclipped estimates of DCG of held-out "
        "queries, 1.2500 ± 0.1000; behind: dcg-linear 0.0500 ± 0.0123; diverged: "
        "lambda-rank; ± one standard error"
    )


def test_without_errors_none_are_told() -> None:
    """One held-out query has no spread, and a loss may be left alone."""
    alone = msgspec.structs.replace(FIRST, error=None, behind_error=None)
    run = msgspec.structs.replace(RUN, loss="arp-linear", losses=[alone])
    assert loss_line(run) == (
        "arp-linear, the best of 1 by unclipped estimates of DCG of held-out "
        "queries, 1.2500"
    )
