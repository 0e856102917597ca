"""``tenure completion``."""

import click
from click.shell_completion import get_completion_class

from tenure.cli.output import say


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    r"""Print a shell's completion script.

    \b
    bash: eval "$(tenure completion bash)" in ~/.bashrc
    zsh:  eval "$(tenure completion zsh)" in ~/.zshrc
    fish: tenure completion fish > ~/.config/fish/completions/tenure.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    say(kind(ctx.find_root().command, {}, "tenure", "_TENURE_COMPLETE").source())
