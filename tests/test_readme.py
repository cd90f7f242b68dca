"""What the README shows is what happens."""

from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_first_program_counts_a_click_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first Python of the README, as it stands there."""
    code = README.read_text(encoding="utf-8").partition("```python\n")[2]
    program = code.partition("```")[0]
    exec(program, {})  # noqa: S102  our own lines

    said = program.rstrip().rpartition("# ")[2]
    assert capsys.readouterr().out.strip() == said == "1 1"
