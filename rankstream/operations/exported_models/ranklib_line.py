"""A linear ranker as RankLib's linear regression: it has a constant, so a scale fits.

Features are numbered from 1, in the order of the model, whatever their names.
"""

import math

from rankstream.operations.exported_models.exported import linear_model
from rankstream.wire.envelope import Snapshot


def write_linear(snapshot: Snapshot) -> bytes:
    """Weights in double precision, those of scales among them; feature 0 is constant.

    Raises
    ------
    ExportRefused, SnapshotError
    """
    model = linear_model(snapshot)
    weights = model.weights / model.deviation
    constant = -math.fsum((weights * model.mean).tolist())
    told = [constant, *weights.tolist()]
    line = " ".join(f"{number}:{weight!r}" for number, weight in enumerate(told))
    return f"## Linear Regression\n## Lambda = 1.0E-10\n{line}\n".encode()
