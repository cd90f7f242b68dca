"""Commands that listen: a port that there is, or a sentence."""

import pytest

from rankstream.operations.cli import parser_for

COMMANDS = (["serve"], ["monitor", "--web"], ["demo", "--web"])


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("told", ["-1", "65536", "99999999", "http"])
def test_a_port_that_cannot_be_is_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one beyond 65535 a socket may take the last 16 bits."""
    with pytest.raises(SystemExit, match="2"):
        parser_for(words).parse_args([*words, f"--port={told}"])
    assert f"--port: must be 0 to 65535; got {told}" in capsys.readouterr().err


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("told", [0, 65_535])
def test_any_other_is_taken(words: list[str], told: int) -> None:
    """The ends too."""
    arguments = parser_for(words).parse_args([*words, "--port", f"{told}"])
    assert arguments.port == told
