"""How far clocks are apart, and whether that matters."""

from rankstream.operations.answers.installation.finding import FAILS, OK, WARNS, Finding
from streams.kafka.append_time import DIFFERS_MS


def clock_finding(
    whose: str, ahead_ms: float, within_ms: float, most_ms: int | None
) -> Finding:
    """What a difference of clocks means.

    Parameters
    ----------
    whose
        The other clock.
    ahead_ms, within_ms
        How far ours is ahead, and how much of that may be the way of the answer.
    most_ms
        How far ahead an event may be; None where nothing is judged by that clock.

    Examples
    --------
    >>> clock_finding("Kafka", 4.0, 1.0, 300_000).state
    'ok'
    >>> clock_finding("Kafka", 45_000.0, 1.0, 300_000).state
    'warns'
    >>> clock_finding("Kafka", 400_000.0, 1.0, 300_000).state
    'fails'
    """
    direction = "ahead" if ahead_ms > 0 else "behind"
    rule = (
        f"this machine's clock must agree with that of {whose}; it is "
        f"{abs(ahead_ms) / 1e3:.1f} s {direction}"
    )
    sure_ms = abs(ahead_ms) - within_ms
    if most_ms is not None and ahead_ms > 0 and sure_ms > most_ms:
        beyond = f"events more than {most_ms / 1e3:g} s ahead (time.ahead_ms)"
        return Finding(
            "clocks",
            FAILS,
            f"{rule}, and {beyond} become dead letters: set both by NTP",
        )
    if sure_ms > DIFFERS_MS:
        return Finding("clocks", WARNS, f"{rule}: set both by NTP")
    return Finding(
        "clocks",
        OK,
        f"this machine and {whose} agree to {abs(ahead_ms) + within_ms:,.0f} ms",
    )
