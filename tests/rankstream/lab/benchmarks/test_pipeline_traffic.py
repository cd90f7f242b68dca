"""What a broker wrote is counted from the segments that it writes."""

from pathlib import Path

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from rankstream.lab.benchmarks.pipeline.traffic import Traffic, Written

ATTRIBUTES = 21
"""Place of the two bytes in the head of a batch."""


def batch(n_records: int, *, is_marker: bool = False) -> bytes:
    """As a producer sends it."""
    builder = DefaultRecordBatchBuilder(2, 0, 1, 5, 0, 0, 1 << 20)
    for offset in range(n_records):
        builder.append(offset, 1_000, b"key", b"value" * 40, [])
    built = bytearray(builder.build())
    built[ATTRIBUTES + 1] |= 32 * is_marker
    return bytes(built)


def append(folder: Path, offset: int, *batches: bytes) -> None:
    """To the segment of an offset."""
    folder.mkdir(exist_ok=True)
    with (folder / f"{offset:020}.log").open("ab") as file:
        file.write(b"".join(batches))


def test_only_what_is_appended_counts(tmp_path: Path) -> None:
    """Records and markers apart, of all partitions; folders of no partition do not."""
    append(tmp_path / "bench1.queries-0", 0, batch(9))
    traffic = Traffic(tmp_path)
    assert traffic.sample() == {}
    two, marker = batch(2), batch(1, is_marker=True)
    append(tmp_path / "bench1.queries-0", 0, two, marker)
    append(tmp_path / "bench1.queries-11", 0, two)
    append(tmp_path / "fold-state-3", 0, marker)
    append(tmp_path / "fold-state-3.123-delete", 0, two)

    wanted = {
        "bench1.queries": Written(4, 3, 1, 2 * len(two) + len(marker)),
        "fold-state": Written(0, 1, 1, len(marker)),
    }
    assert traffic.sample() == wanted
    assert traffic.sample() == wanted


def test_a_batch_counts_once_it_is_whole(tmp_path: Path) -> None:
    """Whether its head is there or not."""
    folder, whole = tmp_path / "events-0", batch(3)
    folder.mkdir()
    traffic = Traffic(tmp_path)
    for start, stop in ((0, 30), (30, 100), (100, len(whole) - 1)):
        append(folder, 0, whole[start:stop])
        assert traffic.sample() == {}
    append(folder, 0, whole[-1:])
    assert traffic.sample() == {"events": Written(3, 1, 0, len(whole))}


def test_segments_that_were_compacted_do_not_count_again(tmp_path: Path) -> None:
    """The end of a segment counts after the next one has begun."""
    folder, one = tmp_path / "fold-state-0", batch(1)
    append(folder, 0, one)
    traffic = Traffic(tmp_path)
    append(folder, 0, one)
    append(folder, 2, one)
    assert traffic.sample()["fold-state"].records == 2

    (folder / f"{0:020}.log").unlink()
    append(folder, 0, one)
    append(folder, 2, one)
    append(folder, 9, one)
    assert traffic.sample()["fold-state"] == Written(4, 4, 0, 4 * len(one))
