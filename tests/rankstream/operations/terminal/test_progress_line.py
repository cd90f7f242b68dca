"""Lines of progress where there is no terminal."""

import pytest

from rankstream.operations.terminal import progress_line
from rankstream.operations.terminal.progress_line import ProgressLine


@pytest.mark.parametrize(
    ("total", "done", "says"),
    [(None, 0, ""), (None, 7, "reading: 7"), (9, 0, "0 of 9")],
)
def test_a_line_is_told_once_there_is_something_to_tell(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    total: int | None,
    done: int,
    says: str,
) -> None:
    """Not that none was read of nobody knows how many."""
    monkeypatch.setattr(progress_line, "LINE_EVERY_S", 0.0)
    with ProgressLine("reading", total=total) as line:
        line.show(done)
    said = capsys.readouterr().err
    assert says in said
    assert bool(said) == bool(says)
