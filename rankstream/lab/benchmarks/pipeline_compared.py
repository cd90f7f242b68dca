"""The fold with ten rankers compared on every list, over the same log without."""

from rankstream.lab.benchmarks.evaluation import compared_records
from rankstream.lab.benchmarks.fold_log import ONE_PARTITION
from rankstream.lab.benchmarks.pipeline_local import as_in_workers, timed
from rankstream.lab.benchmarks.pipeline_repeats import (
    Figure,
    Run,
    in_turns,
    throughput_figure,
)
from rankstream.settings import ExperimentSettings, Settings
from streams.local import LocalPipeline

N_RANKERS = 10


def compared_figure(n_impressions: int, n_repeats: int) -> Figure:
    """By seconds of CPU, in process; only the settings name the experiment or not."""
    records, n_events = compared_records(n_impressions)
    n_bytes = sum(map(len, records)) / n_events
    rankers = {f"r{i}": "" for i in range(N_RANKERS)}
    without = Settings(kafka=ONE_PARTITION)
    compared = Settings(
        kafka=ONE_PARTITION, experiments={"bench": ExperimentSettings(rankers=rankers)}
    )

    def credited(settings: Settings, expected: int) -> list[str]:
        pipeline = LocalPipeline(settings, now=lambda: 0)
        for value in records:
            pipeline.fold_events(0, value)
        pipeline.flush()
        found = pipeline.counters()["compared_credited"]
        if found == expected:
            return []
        return [f"compared_credited must be {expected}; got {found}"]

    with as_in_workers():
        credited(compared, n_impressions)
        pairs = in_turns(
            lambda: timed(lambda: credited(compared, n_impressions)),
            lambda: timed(lambda: credited(without, 0)),
            n_repeats,
        )
    runs = [
        (
            Run(n_events / ours.cpu_s, n_bytes, ours.faults),
            Run(n_events / theirs.cpu_s, n_bytes, theirs.faults),
        )
        for ours, theirs in pairs
    ]
    name = f"{N_RANKERS} rankers compared on every list, over the same log without; CPU"
    return throughput_figure(name, runs, goal=0.5, floor=0.3)
