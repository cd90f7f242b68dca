"""Events of the benchmark are of their topic, and ingestion takes all of them."""

import msgspec
import pytest

from rankstream.lab.benchmarks.ingestion import (
    decoder_of,
    ingested,
    measure,
    records_of,
)
from rankstream.wire.topics import CLICKS, QUERIES


@pytest.mark.parametrize(
    ("topic", "n_features"), [(QUERIES, 0), (CLICKS, 0), (QUERIES, 4)]
)
def test_all_events_of_a_figure_are_ingested(topic: str, n_features: int) -> None:
    """Else it would measure refusals."""
    records = records_of(topic, 300, n_features)
    assert len(records) == 300
    assert ingested(records) > 0
    with pytest.raises(ValueError, match="must be accepted"):
        ingested([*records, records[0]._replace(value=b"7")])


def test_a_decoder_takes_its_topic_only() -> None:
    """It is the rival: what it does is what ingestion begins with."""
    (click,) = records_of(CLICKS, 1)
    decoder_of(CLICKS)(click.value or b"")
    with pytest.raises(msgspec.ValidationError):
        decoder_of(QUERIES)(click.value or b"")


def test_each_figure_says_how_many_times_decoding_it_is() -> None:
    """Less is better, and bounds are of that."""
    for figure in measure(quick=True):
        assert figure["ratio"] == figure["rival"] / figure["value"]
        assert figure["less_is_better"]
        assert figure["bounds_are_ratios"]
