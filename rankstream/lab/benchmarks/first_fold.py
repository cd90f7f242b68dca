"""What a worker's fold does before its first record, and that record: a program."""

from rankstream.lab.benchmarks.fold_log import ONE_PARTITION, folded_records
from rankstream.lab.benchmarks.workload import Workload
from rankstream.settings import Settings
from rankstream.wire.events import LOGGED
from streams.topology import STAGES


def main() -> None:
    """Warm up, build, fold, as the role's process does."""
    settings = Settings(kafka=ONE_PARTITION)
    (kind,) = (kind for kind in STAGES if kind.name == "fold")
    if kind.warm_up is not None:
        kind.warm_up(settings)
    fold = kind.build(settings, 0)
    for record, _ in folded_records(Workload(100, LOGGED, n_partitions=1)):
        fold.fold(record)
    fold.settle()
    if fold.counters()["applied_impressions"] != 100:
        raise ValueError("all impressions must be folded")


if __name__ == "__main__":
    main()
