"""Settings of sources that cannot be."""

from pathlib import Path

import pytest

from rankstream.settings import SettingsError, load_settings

UBI = 'topic = "ubi"\nformat = "ubi"\n'


def loaded(folder: Path, text: str) -> object:
    """The settings in a file with this text."""
    path = folder / "s.toml"
    path.write_text(text)
    return load_settings(path, {})


def test_a_source_is_read_as_it_is_written(tmp_path: Path) -> None:
    """With the options of its format."""
    settings = loaded(
        tmp_path, f"[sources.search]\n{UBI}[sources.search.options]\nordinal_base = 0\n"
    )
    assert settings.sources["search"].options == {"ordinal_base": 0}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[sources.a]\nformat = "ubi"\n', "sources.a.topic must be set"),
        (f"[sources.a]\n{UBI}group = 1\n", "sources.a.group is no setting"),
        (f'[sources.a]\n{UBI}start = "now"\n', "sources.a.start must be one of"),
        ('[sources.a]\ntopic = "a b"\nformat = "ubi"\n', "must be a topic"),
        (f"[sources.a]\n{UBI}[sources.b]\n{UBI}", "another one than that of sources.a"),
        ('[sources.a]\ntopic = "a"\nformat = "x"\n', "sources.a.format: a format must"),
        (
            f"[sources.a]\n{UBI}[sources.a.options]\nordinal = 0\n",
            "sources.a.options: options of a format must be some of",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_setting(
    text: str, words: str, tmp_path: Path
) -> None:
    """And with the file."""
    with pytest.raises(SettingsError) as refused:
        loaded(tmp_path, text)
    assert words in str(refused.value)
    assert "s.toml" in str(refused.value)
