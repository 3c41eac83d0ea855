"""`nsysmap completion`: what a shell needs to complete commands, options and paths."""

from __future__ import annotations

import click

PATH = click.Path(readable=False)  # plain text to us, which shells complete as a path; our own errors say what is wrong with it
_PATHS = frozenset({"FILE", "MODEL", "REPORT", "ENGINE", "DIR", "LOG", "BEFORE", "AFTER"})


def complete_paths(command: click.Command) -> None:
    """Let shells complete paths for every parameter of the command that its metavar says is one."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            complete_paths(inner)
    for parameter in command.params:
        words = (parameter.metavar or "").replace("[", " ").replace("]", " ").replace(".", " ").replace("|", " ").split()
        if parameter.type is click.STRING and _PATHS & set(words):
            parameter.type = PATH


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the script that lets a shell complete nsysmap's commands, options and paths.

    \b
    Examples:
      echo 'eval "$(nsysmap completion bash)"' >> ~/.bashrc
      echo 'eval "$(nsysmap completion zsh)"' >> ~/.zshrc
      nsysmap completion fish > ~/.config/fish/completions/nsysmap.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None  # click knows all three
    click.echo(made(context.find_root().command, {}, "nsysmap", "_NSYSMAP_COMPLETE").source())
