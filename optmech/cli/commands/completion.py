"""``optmech completion``: what a shell needs to complete commands, options and names."""

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from optmech.cli.inputs import argument
from optmech.cli.output import Answer, Lines

SUMMARY = "print a script that completes commands and options in a shell"
EXAMPLE = "optmech completion bash > ~/.local/share/bash-completion/completions/optmech"
_NAMED = {"solve": "", "export": "", "adopt": "", "transport": "", "trace": "traces",
          "sweep": "sweeps"}  # fmt: skip
"""Commands that take a name of the gallery, and the folder that it is in."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    argument(parser, "shell", "", choices=("bash", "zsh", "fish"))
    parser.description = (
        f"{parser.description}\n\nFor fish the file is ~/.config/fish/completions/optmech.fish; "
        "zsh sources what is printed for it."
    )


def run(args: argparse.Namespace) -> Answer:
    """The script, complete in itself: nothing is run when a key is pressed."""
    from optmech.cli.main import build_parser

    commands = list(_commands(build_parser()))
    script = _fish(commands) if args.shell == "fish" else _bash(commands, args.shell)
    return Answer({"shell": args.shell, "script": script}, [Lines(script.rstrip("\n"))])


@dataclass(frozen=True)
class _Command:
    name: str
    summary: str
    options: tuple[argparse.Action, ...]
    words: tuple[str, ...]
    """What may stand in its first place besides files."""


def _commands(parser: argparse.ArgumentParser) -> Iterator[_Command]:
    from optmech.files.gallery import gallery_names

    (group,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    said = {choice.dest: choice.help or "" for choice in group._choices_actions}
    for name, command in group.choices.items():
        options = tuple(a for a in command._actions if a.option_strings)
        places = [a for a in command._actions if not a.option_strings]
        words = [str(choice) for choice in places[0].choices or ()] if places else []
        if name in _NAMED:
            words += gallery_names(_NAMED[name])
        yield _Command(name, said[name], options, tuple(words))


def _bash(commands: list[_Command], shell: str) -> str:
    lines = ["autoload -U +X bashcompinit && bashcompinit"] if shell == "zsh" else []
    lines += [
        "_optmech() {",
        "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}",
        "  local command=${COMP_WORDS[1]} words= choices=",
        "  COMPREPLY=()",
        "  if [ $COMP_CWORD -eq 1 ]; then",
        f'    COMPREPLY=($(compgen -W "{_joined([c.name for c in commands])}" -- "$word"))',
        "    return",
        "  fi",
        "  case $command in",
    ]
    for command in commands:
        options = [text for action in command.options for text in action.option_strings]
        lines.append(f"  {command.name})")
        lines.append(f'    words="{_joined(options)}"')
        lines.append(f'    [ $COMP_CWORD -eq 2 ] && choices="{_joined(command.words)}"')
        chosen = [a for a in command.options if a.choices]
        if chosen:
            lines.append("    case $before in")
            for action in chosen:
                listed = _joined([str(choice) for choice in action.choices or ()])
                pattern = "|".join(action.option_strings)
                lines.append(
                    f'    {pattern}) COMPREPLY=($(compgen -W "{listed}" -- "$word")); return;;'
                )
            lines.append("    esac")
        lines.append("    ;;")
    lines += [
        "  esac",
        "  case $word in",
        '  -*) COMPREPLY=($(compgen -W "$words" -- "$word"));;',
        '  *) COMPREPLY=($(compgen -W "$choices" -- "$word") $(compgen -f -- "$word"));;',
        "  esac",
        "}",
        "complete -o filenames -F _optmech optmech",
    ]
    return "\n".join(lines) + "\n"


def _fish(commands: list[_Command]) -> str:
    lines = []
    for command in commands:
        lines.append(
            f"complete -c optmech -n __fish_use_subcommand -a {command.name} "
            f"-d {shlex.quote(command.summary)}"
        )
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"complete -c optmech {seen} -a {shlex.quote(_joined(command.words))}")
        for action in command.options:
            names = [
                f"-l {text[2:]}" if text.startswith("--") else f"-s {text[1:]}"
                for text in action.option_strings
            ]
            takes = " -r" if action.nargs != 0 else ""
            if action.choices:
                takes += f" -f -a {shlex.quote(_joined([str(c) for c in action.choices]))}"
            told = shlex.quote((action.help or "").replace("%%", "%")[:80])
            lines.append(f"complete -c optmech {seen} {' '.join(names)}{takes} -d {told}")
    return "\n".join(lines) + "\n"


def _joined(words: tuple[str, ...] | list[str]) -> str:
    return " ".join(words)
