"""``optmech completion``: what a shell needs to complete commands, options and names."""

import argparse
from functools import partial
from typing import Any

from optmech.cli.inputs import option
from optmech.cli.output import Answer, Lines

SUMMARY = "print a script that completes commands and options in a shell"
EXAMPLE = "optmech completion bash > ~/.local/share/bash-completion/completions/optmech"
_NAMED = {"solve": "", "export": "", "adopt": "", "transport": "", "trace": "trace",
          "sweep": "sweeps"}  # fmt: skip
"""Commands that take a name of the gallery, and the folder that it is in."""
DETAILS = (
    "\n\nFor fish the file is ~/.config/fish/completions/optmech.fish; zsh sources what is printed "
    "for it."
)
ARGUMENTS = {
    "shell": option("", choices=("bash", "zsh", "fish")),
}


def run(args: argparse.Namespace) -> Answer:
    """The script, which asks ``optmech`` when a key is pressed: see ``complete``."""
    from argcomplete.shell_integration import shellcode

    script = shellcode(["optmech"], shell=args.shell)
    return Answer({"shell": args.shell, "script": script}, [Lines(script.rstrip("\n"))])


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell in which a key was pressed, and end."""
    from argcomplete import autocomplete

    (group,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in group.choices.items():
        if name in _NAMED:
            first: Any = next(a for a in command._actions if not a.option_strings)
            first.completer = partial(_names, _NAMED[name])
    autocomplete(parser)


def _names(folder: str, prefix: str, **_: object) -> list[str]:
    """Names of the gallery, and files."""
    from argcomplete.completers import FilesCompleter

    # without the room of files, whose imports would take longer than everything else
    from optmech.base.extensions import TASKS, added, gallery_of
    from optmech.base.machine import data_folder

    place = gallery_of(folder) if folder in added(TASKS) else data_folder("problems") / folder
    names = (path.stem for path in place.glob("*.toml"))
    return [*names, *FilesCompleter()(prefix)]
