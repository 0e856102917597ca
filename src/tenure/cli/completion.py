"""``tenure completion``."""

from collections.abc import Mapping
from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from tenure.cli.output import say

SHELLS: Final[Mapping[str, type[ShellComplete]]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    r"""Print a shell's completion script.

    \b
    bash: eval "$(tenure completion bash)" in ~/.bashrc
    zsh:  eval "$(tenure completion zsh)" in ~/.zshrc
    fish: tenure completion fish > ~/.config/fish/completions/tenure.fish
    """
    say(SHELLS[shell](ctx.find_root().command, {}, "tenure", "_TENURE_COMPLETE").source())
