"""Items of many queries with what is known of each, as a training reads them."""

from typing import NamedTuple, Protocol

from models.arrays import Flags, Floats, Integers, Singles


class QueryChunk(NamedTuple):
    """Some queries, end to end: items of query i are at offsets[i] : offsets[i + 1].

    Parameters
    ----------
    offsets : [n_queries + 1]
        From 0, rising.
    features : [n_items, n_features]
        In one piece, normalised as the model normalises.
    values : [n_items]
        Of an impression, as estimated from clicks; 0 where `is_kept` is not set.
    is_kept : [n_items]
        Whether the value is finite and has enough support to tell anything.
    weights : [n_queries]
        Share of the query among all impressions of the source: those of all chunks of
        a `ChunkSource` together are 1.
    """

    offsets: Integers
    features: Singles
    values: Floats
    is_kept: Flags
    weights: Floats

    @property
    def n_queries(self) -> int:
        """How many queries it has."""
        return len(self.weights)


class ChunkSource(Protocol):
    """Chunks by number, few of them; each may lie in a file that is mapped."""

    def __len__(self) -> int:
        """How many chunks there are."""

    def __getitem__(self, number: int, /) -> QueryChunk:
        """The chunk of that number, from 0.

        Raises
        ------
        IndexError
            Where there is none.
        """
