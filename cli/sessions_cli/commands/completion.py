"""`sessions completion`: the script that lets a shell complete commands, options, apps, branches and ids."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from sessions_cli import output
from sessions_cli.options import COMPLETE_VARIABLE

_COMPLETION_SYSTEM = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"
"""A ~/.zshrc that has not switched completion on yet gets it switched on."""


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def command(shell: str) -> int:
    """Print the completion script for a SHELL.

    \b
    bash: add to ~/.bashrc   eval "$(sessions completion bash)"
    zsh:  add to ~/.zshrc    eval "$(sessions completion zsh)"
    fish: sessions completion fish > ~/.config/fish/completions/sessions.fish
    """  # noqa: D301 - \b is click's mark for lines that stay as they are
    made = get_completion_class(shell)
    assert made is not None
    completion = made(click.Command("sessions"), {}, "sessions", COMPLETE_VARIABLE)
    script = completion.source_template % completion.source_vars() + "\n"
    if shell == "zsh":
        first, _, rest = script.partition("\n")  # has to stay first: zsh looks there when it loads from a file
        script = f"{first}\n{_COMPLETION_SYSTEM}{rest}"
    output.write(script)
    return 0
