"""When a training ends: after some passes that did not gain on held-out queries."""


class EarlyStopping:
    """Takes the worth of each pass, of which more is better.

    Parameters
    ----------
    first
        Worth of the start.
    patience
        Passes without a gain, at least 1, after which it is over.
    least_gain
        What is a gain, as a share of the best so far, at least 0.

    Attributes
    ----------
    best, best_number
        The highest worth and the number of its pass, from 1; 0 is the start. Of equal
        ones the first.
    is_over
        Whether patience is at its end.

    Examples
    --------
    >>> stopping = EarlyStopping(1.0, patience=2, least_gain=0.1)
    >>> [stopping.take(worth) for worth in (1.05, 1.2, 1.25)], stopping.is_over
    ([True, True, True], False)
    >>> stopping.take(1.2), stopping.is_over, stopping.best_number
    (False, True, 3)
    """

    def __init__(self, first: float, *, patience: int, least_gain: float) -> None:
        self.best, self.best_number, self.is_over = first, 0, False
        self._patience, self._least_gain = patience, least_gain
        self._mark, self._since, self._n = first, 0, 0

    def gains_from(self, worth: float) -> None:
        """Measure gains from this worth, of what begins below the start."""
        self._mark = worth

    def take(self, worth: float) -> bool:
        """Take the worth of the next pass; whether it is the best so far."""
        self._n += 1
        if worth - self._mark > self._least_gain * abs(self._mark):
            self._mark, self._since = worth, 0
        else:
            self._since += 1
        self.is_over = self._since >= self._patience
        if worth <= self.best:
            return False
        self.best, self.best_number = worth, self._n
        return True
