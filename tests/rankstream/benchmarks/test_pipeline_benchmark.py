"""What several runs of the pipeline come to."""

from rankstream.benchmarks.pipeline import FULL, median_rate


def test_a_throughput_is_the_median_of_its_runs() -> None:
    """Neither the best nor the mean."""
    runs = [(rate, 338.0, list[str]()) for rate in (10.0, 70.0, 20.0)]

    assert median_rate(runs) == (20.0, 338.0, [])
    assert FULL.repeats == 3


def test_one_run_that_is_wrong_voids_the_figure() -> None:
    """Whichever of them it is."""
    for wrong in range(3):
        runs = [(1.0, 338.0, ["lost"] if n == wrong else []) for n in range(3)]

        assert median_rate(runs)[2] == ["lost"]
