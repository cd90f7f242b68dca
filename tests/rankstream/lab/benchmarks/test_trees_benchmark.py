"""Both sides of the benchmark of trees score alike."""

from rankstream.lab.benchmarks.trainings.trees import measure


def test_scores_are_the_same_on_both_sides() -> None:
    """A figure would be void where they were not."""
    beside, alone, training = measure(quick=True)
    assert beside["ratio"] is not None
    assert beside["ratio"] > 0.0
    assert alone["value"] > 0.0
    assert training["ratio"] > 0.0
