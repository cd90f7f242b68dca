"""Where a query goes when the log gets more partitions."""

from collections.abc import Sequence

from rankstream.wire.routing import partition_of_route, route_of_query


def heir_of(query: str, heirs: Sequence[int], n_partitions: int) -> int:
    """The heir that a query of a partition goes to.

    Parameters
    ----------
    heirs
        Of its partition.
    n_partitions
        Of the log from here on.

    Raises
    ------
    ValueError
        Where it is a query of another partition.
    """
    heir = partition_of_route(route_of_query(query), n_partitions)
    if heir not in heirs:
        raise ValueError(
            f"queries must be of partitions {list(heirs)}; {query!r:.100} is of {heir}"
        )
    return heir
