"""How old something is in event time, in words."""


def age_in_words(created_ms: int, now_ms: float) -> str:
    """How old a snapshot is in event time, which may be ahead of this clock.

    Examples
    --------
    >>> [age_in_words(at_ms, 90_000.0) for at_ms in (0, 1_000, 95_000)]
    ['from the start', '89 s old in event time', 'its event time 5 s ahead']
    """
    if not created_ms:
        return "from the start"
    age_s = round((now_ms - created_ms) / 1_000.0)
    said = duration_in_words(abs(age_s))
    return f"its event time {said} ahead" if age_s < 0 else f"{said} old in event time"


def short_age(created_ms: int, now_ms: float) -> str:
    """The same for a column.

    Examples
    --------
    >>> [short_age(at_ms, 90_000.0) for at_ms in (0, 1_000, 95_000)]
    ['-', '89 s', '-5 s']
    """
    if not created_ms:
        return "-"
    age_s = round((now_ms - created_ms) / 1_000.0)
    return f"{'-' if age_s < 0 else ''}{duration_in_words(abs(age_s))}"


def duration_in_words(seconds: int) -> str:
    """In the largest unit of which there are two.

    Examples
    --------
    >>> [duration_in_words(each) for each in (119, 120, 7_200)]
    ['119 s', '2 min', '2 h']
    """
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7_200 else f"{seconds // 3_600:,} h"
