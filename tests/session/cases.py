"""How many cases a law is held to: chosen ones, or all of them in `make long`."""

import os

ALL_CASES = os.environ.get("RANKSTREAM_TEST_CASES") == "all"


def n_cases(chosen: int, every: int) -> int:
    """As many as a run of this kind tries.

    Parameters
    ----------
    chosen
        The first ones: edges, and those by which faults were found before.
    every
        With those that are drawn beside them, for who has hours.
    """
    return every if ALL_CASES else chosen
