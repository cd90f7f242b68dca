"""`rankstream completion`: shells complete commands, actions, options and choices."""

import os
import pty
import select
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from rankstream.operations.cli import COMMANDS, main
from tests.services import ServiceMissing, without
from tests.worker_process import PATIENCE_S

LINES = [
    ("rankstream sna", {"snapshots"}),
    ("rankstream snapshots ro", {"rollback"}),
    ("rankstream snapshots rollback --exp", {"--expect"}),
    ("rankstream topics ch", {"check"}),
    ("rankstream evaluate x --weights re", {"relevant-clicks"}),
    ("rankstream completion z", {"zsh"}),
    ("rankstream d", {name for name in COMMANDS if name.startswith("d")}),
]
"""What is typed, and what the last word may become."""


@pytest.fixture
def script(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Path:
    """That of a shell, in a file."""
    assert main(["completion", request.param]) == 0
    file = tmp_path / "_rankstream"
    file.write_text(capsys.readouterr().out)
    return file


def shell(name: str) -> str:
    """Where it is; without it the test is skipped by hand, and fails in CI."""
    found = shutil.which(name)
    if found is None:
        without(ServiceMissing(f"no {name} is on the path: install it"), os.environ)
    return found


def said(words: list[str], folder: Path) -> set[str]:
    """Lines that a program prints, without what stands behind a tab."""
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, cwd=folder,
        env=os.environ | {"HOME": str(folder)},
    )  # fmt: skip
    assert done.stderr == ""
    return {line.partition("\t")[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("script", ["bash"], indirect=True)
@pytest.mark.parametrize(("line", "expected"), LINES)
def test_bash_completes(line: str, expected: set[str], script: Path) -> None:
    """As it does where somebody presses Tab: by its variables."""
    words = line.split(" ")
    program = (
        f"source {shlex.quote(str(script))}; COMP_WORDS=({shlex.join(words)}); "
        f"COMP_CWORD={len(words) - 1}; _shtab_rankstream; "
        'printf "%s\\n" "${COMPREPLY[@]}"; complete -p rankstream >/dev/null'
    )
    bash = [shell("bash"), "--noprofile", "--norc", "-c", program]
    assert said(bash, script.parent) == expected


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_bash_completes_files(script: Path) -> None:
    """Where an option takes one."""
    (script.parent / "shop.toml").touch()
    line = ["rankstream", "doctor", "--config", "sho"]
    program = (
        f"source {shlex.quote(str(script))}; COMP_WORDS=({shlex.join(line)}); "
        'COMP_CWORD=3; _shtab_rankstream; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    bash = [shell("bash"), "--noprofile", "--norc", "-c", program]
    assert said(bash, script.parent) == {"shop.toml"}


@pytest.mark.parametrize("script", ["fish"], indirect=True)
@pytest.mark.parametrize(("line", "expected"), LINES)
def test_fish_completes(line: str, expected: set[str], script: Path) -> None:
    """As `complete -C` says that it does."""
    asked = f"source {shlex.quote(str(script))}; complete -C {shlex.quote(line)}"
    fish = [shell("fish"), "--no-config", "-c", asked]
    assert said(fish, script.parent) == expected


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
@pytest.mark.parametrize(
    ("line", "expected"), [each for each in LINES if len(each[1]) == 1]
)
def test_zsh_completes(line: str, expected: set[str], script: Path) -> None:
    """On a terminal of its own, where Tab is pressed."""
    begin = (
        # What is typed is shown too, and is not the prompt.
        f"PS1='re''ady> '; fpath=({shlex.quote(str(script.parent))} $fpath); "
        "autoload -Uz compinit; compinit -u -D"
    )
    ours, theirs = pty.openpty()
    zsh = subprocess.Popen(
        [shell("zsh"), "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
        env=os.environ | {"HOME": str(script.parent), "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    try:
        os.write(ours, f"{begin}\n".encode())
        heard(ours, "ready> ", zsh)
        os.write(ours, f"{line}\t".encode())
        (word,) = expected
        assert word in heard(ours, word, zsh)
    finally:
        zsh.kill()
        zsh.wait()
        os.close(ours)


def heard(terminal: int, awaited: str, process: subprocess.Popen[bytes]) -> str:
    """What a terminal shows until it shows something; all of it, where that ends."""
    told = ""
    while awaited not in told and process.poll() is None:
        if not select.select([terminal], [], [], PATIENCE_S)[0]:
            break
        told += os.read(terminal, 4096).decode(errors="replace")
    return told


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With the nearest one."""
    with pytest.raises(SystemExit, match="2"):
        main(["completion", "zhs"])
    assert "did you mean zsh?" in capsys.readouterr().err


@pytest.mark.parametrize("script", ["bash"], indirect=True)
def test_folders_complete_what_must_be_a_folder(script: Path) -> None:
    """And files the rest."""
    told = script.read_text()
    assert "_shtab_rankstream_replay___out_COMPGEN=_shtab_compgen_dirs\n" in told
    assert "_COMPGEN=_shtab_compgen_files\n" in told
