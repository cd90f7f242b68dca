"""The picture of an answer, by what it is."""

from functools import singledispatch

from rankstream.operations.answers.comparisons.refitted import Refitted
from rankstream.operations.answers.curve import CurveOfBias
from rankstream.operations.answers.relevance import QueryRelevance
from rankstream.operations.answers.shown_query import ShownQuery
from rankstream.operations.answers.statistics import CountedScopes
from rankstream.operations.answers.values import Values
from rankstream.operations.plots.bias import bias_picture, fitted_picture
from rankstream.operations.plots.interventions import intervention_picture
from rankstream.operations.plots.picture import Picture
from rankstream.operations.plots.policies import values_picture
from rankstream.operations.plots.relevance import (
    counts_picture,
    query_picture,
    relevance_picture,
)
from rankstream.operations.plots.verdicts import refitted_picture, verdict_picture
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.training import RunRecord
from rankstream.wire.verdicts import Verdict


@singledispatch
def picture_of(answer: object) -> Picture:
    """What a picture of an answer holds.

    Raises
    ------
    TypeError
        Where there is none of its kind.
    """
    raise TypeError(f"an answer must have a picture; got {type(answer).__name__}")


picture_of.register(CountedScopes)(counts_picture)
picture_of.register(CurveOfBias)(bias_picture)
picture_of.register(CurveRecord)(fitted_picture)
picture_of.register(QueryRelevance)(relevance_picture)
picture_of.register(Refitted)(refitted_picture)
picture_of.register(RunRecord)(intervention_picture)
picture_of.register(ShownQuery)(query_picture)
picture_of.register(Values)(values_picture)
picture_of.register(Verdict)(verdict_picture)
