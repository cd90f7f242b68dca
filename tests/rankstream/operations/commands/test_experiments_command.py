"""What the fold would refuse never reaches a client."""

from pathlib import Path

import pytest

from rankstream.operations.cli import main

TWO, THREE = 'rankers = { a = "", b = "" }', 'rankers = { a = "", b = "", c = "" }'
TEXT = '"abc"'
MANY = ", ".join(f'r{i} = ""' for i in range(257))


def beside(method: str, examination: str) -> str:
    """Click rates from lists of the method."""
    also = f'"counterfactual:{method}" = {{ examination = {examination} }}'
    return f'method = "{method}"\nalso = {{ {also} }}'


@pytest.mark.parametrize(
    ("table", "fact"),
    [
        (f"{TWO}\n{beside('probabilistic', '[1.0]')}", "exposures are exact"),
        (f"{TWO}\n{beside('optimized', '[1.0]')}", "'optimized' cannot be drawn"),
        (f"{THREE}\n{beside('team-draft', '[1.0]')}", "2 rankers at most"),
        (f'{THREE}\nmethod = "balanced"', "must be two for balanced"),
        (
            f'{TWO}\nmethod = "optimized"',
            "'optimized' cannot be drawn by services; choose one of [",
        ),
        (f"{TWO}\n{beside('pairwise-preference', '[1.0, 60.0]')}", "examination must"),
        (f"{TWO}\n{beside('pairwise-preference', '[1.0, nan]')}", "examination must"),
        (f"{TWO}\n{beside('pairwise-preference', '[1.0, 0.0]')}", "examination must"),
        (f"{TWO}\n{beside('pairwise-preference', '[true]')}", "examination must"),
        (f"{TWO}\n{beside('pairwise-preference', '[]')}", "examination must"),
        (f"{TWO}\n{beside('pairwise-preference', TEXT)}", "must be a list"),
        (f"{TWO}\n{beside('pairwise-preference', f'[{TEXT}]')}", "examination must"),
        (f"{TWO}\noptions = {{ taux = 3 }}", "options of pairwise-preference"),
        (f'{TWO}\nmethod = "probabilistic"\noptions = {{ tau = -1 }}', "tau must"),
        (f'{TWO}\nmethod = "probabilistic"\noptions = {{ tau = "3" }}', "tau must"),
        (f"{TWO}\noptions = {{ largest_weight = nan }}", "largest_weight must"),
        (f"{TWO}\noptions = {{ largest_weight = inf }}", "largest_weight must"),
        (f"{TWO}\noptions = {{ largest_preference = inf }}", "finite float"),
        (f"{TWO}\noptions = {{ largest_preference = -1 }}", "largest_preference must"),
        (f"{TWO}\noptions = {{ published = 1 }}", "published must be bool"),
        (
            f'{TWO}\nmethod = "ab"\noptions = {{ most_clicks = 1.5 }}',
            "most_clicks must be int",
        ),
        (f"{TWO}\nstart_ms = 10\nend_ms = 10", "end_ms must be 0 or after"),
        (f"rankers = {{ {MANY} }}", "rankers must be 256 at most"),
    ],
)
def test_publishing_refuses_what_cannot_be_folded(
    table: str, fact: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the name of the experiment, before the store is asked."""
    config = tmp_path / "shop.toml"
    redis = '[redis]\nurl = "redis://127.0.0.1:9/0"'
    config.write_text(f"{redis}\n[experiments.boost]\n{table}\n")

    assert main(["experiments", "publish", "--config", str(config)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert fact in said
    assert "experiments.boost" in said
    assert "Redis" not in said
