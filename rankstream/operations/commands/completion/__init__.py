"""`rankstream completion`: what a shell completes commands and options by."""

import argparse

SHELLS = ("bash", "zsh", "fish")

EPILOG = """examples:
  rankstream completion bash > ~/.local/share/bash-completion/completions/rankstream
  rankstream completion zsh > ~/.zfunc/_rankstream      where ~/.zfunc is in $fpath,
                                                        before compinit runs
  rankstream completion fish > ~/.config/fish/completions/rankstream.fish
  source <(rankstream completion bash)                  in this shell alone

The script has all commands, actions, options and choices of this release, and starts
nothing. Print it again after an upgrade.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=SHELLS, help="which one the script is for")
