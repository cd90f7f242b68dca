"""Words for people: numbers, times, losses, and text as a terminal shows it."""

import datetime

from rich.markup import escape

from rankstream.wire.envelope import TREES
from rankstream.wire.models.training import LossTried, RunRecord
from rankstream.wire.routing import SEGMENT_MARK

SEGMENT_SYMBOL = "\u241f"
"""What the mark of a segment, which cannot be seen, is printed as."""


def counted(number: int, thing: str, things: str = "") -> str:
    """`1 list`, `2 lists`, `1,000 queries`.

    Examples
    --------
    >>> counted(1, "list"), counted(2_000, "query", "queries")
    ('1 list', '2,000 queries')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def moment(at_ms: int) -> str:
    """A time as people read it.

    Examples
    --------
    >>> moment(1_750_000_000_000)
    '2025-06-15 15:06:40'
    """
    try:
        at = datetime.datetime.fromtimestamp(at_ms / 1_000.0, datetime.UTC)
    except (OverflowError, ValueError, OSError):  # after the year 9999
        return f"{at_ms:,} ms"
    return at.strftime("%Y-%m-%d %H:%M:%S")


def plain(text: str) -> str:
    r"""Text without control characters and without markup, for a table of `rich`.

    Examples
    --------
    >>> plain("red shoes"), plain("[/]"), plain("a\x1b[2J")
    ('red shoes', '\\[/]', 'a\\x1b[2J')
    """
    return escape(visible(text))


def visible(text: str) -> str:
    r"""Text without control characters, for what is written as it is.

    A segment stands behind its query and a symbol.

    Examples
    --------
    >>> visible("[a\x1b[2J]"), visible("shoes\x1fnl")
    ('[a\\x1b[2J]', 'shoes␟nl')
    """
    text = text.replace(SEGMENT_MARK, SEGMENT_SYMBOL)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def loss_line(run: RunRecord) -> str:
    """The loss; where it, or a kind, was chosen also how far others are behind it.

    With standard errors, of differences by query, where there are any.
    """
    if not run.losses:
        return run.loss
    # Of equal ones the first was taken.
    best = min(run.losses, key=lambda each: each.behind)
    behind = ", ".join(
        f"{_tried(each)} {_with_error(each.behind, each.behind_error)}"
        for each in run.losses
        if each is not best
    )
    parts = [
        f"{_tried(best)}, the best of {len(run.losses)} by unclipped estimates of DCG "
        f"of held-out queries, {_with_error(best.dcg, best.error)}",
        f"behind: {behind}" if behind else "",
        f"diverged: {', '.join(_fallen(run))}" if _fallen(run) else "",
        "± one standard error" if best.error is not None else "",
    ]
    return "; ".join(filter(None, parts))


def _tried(each: LossTried) -> str:
    return f"{each.kind} by {each.loss}" if each.kind else each.loss


def _fallen(run: RunRecord) -> list[str]:
    """Those to choose from that came to nothing."""
    losses = run.settings.get("training", {}).get("losses") or [run.loss]
    is_by_kind = any(each.kind for each in run.losses)
    came = {_tried(each) for each in run.losses}
    wanted = [
        f"{kind} by {loss}" if kind else loss
        for kind in (("linear", TREES) if is_by_kind else ("",))
        for loss in losses
    ]
    return [each for each in wanted if each not in came]


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.4f}" + ("" if error is None else f" ± {error:.4f}")
