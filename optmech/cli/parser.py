"""The parser of the command line, whose mistakes are answered with remedies in its own words."""

import argparse
import difflib
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from optmech.base.extensions import COMMANDS, MEASURES, extension
from optmech.errors import OptmechError, ProblemError

_NUMBER = re.compile(r"-[0-9.]")
_MINUS = "Write -- before an argument that begins with a minus sign"
_IN_PYTHON = {
    'outside = "nearest" or "drop"': "--outside nearest or --outside drop",
    'outside = "drop"': "--outside drop",
    'missing = "drop"': "--missing drop",
    "or keep it all the same with keep_place = ": "protect it too (--pair), or --keep-place ",
    "Name x and y; ": "Give --x and --y; ",
    "Name x and y, or label": "Give --x and --y, or --label",
}
"""What is said in the words of Python, and the options for it."""
_UNREADABLE = ("cannot be read: No such file", "there is no such file")


_PAIR = re.compile(r"-[0-9.]+(,[-0-9.]+)+")
"""Coordinates that begin with a minus, which argparse takes for an option."""


def joined(argv: Sequence[str]) -> list[str]:
    """Arguments, with coordinates that follow an option joined to it as its value."""
    out: list[str] = []
    for word in argv:
        if out and re.fullmatch("--[a-z-]+", out[-1]) and _PAIR.fullmatch(word):
            out[-1] += f"={word}"
        else:
            out.append(word)
    return out


class Parser(argparse.ArgumentParser):
    """Usage errors in the one-line style of all others."""

    given: ClassVar[Sequence[str]] = ()
    """The words of the command line, for what is said of mistakes in it."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        text, known = str(value)[:80], list(action.choices or ())
        if isinstance(action, argparse._SubParsersAction) and value not in known:
            with suppress(LookupError):
                # refused with who has it
                extension(COMMANDS, str(value))
        close = difflib.get_close_matches(text, map(str, known), n=1)
        if close and value not in known:
            raise ProblemError(
                f"{text!r} is unknown", where=self.prog, remedy=f"Did you mean {close[0]!r}?"
            )
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        remedy = f"Run {self.prog} --help"
        if message.startswith("unrecognized arguments: "):
            # an argument may be blank
            remedy = self._unknown(*message.split()[2:3])
        elif found := re.search(r"invalid (float|int) value: '(.*)'$", message):
            remedy = _of_number(found[1], found[2].strip()) or remedy
        elif "are required: " in message and any(map(_NUMBER.match, self.given)):
            remedy = _MINUS
        raise ProblemError(message, where=self.prog, remedy=remedy)

    def at_option(self, error: OptmechError) -> OptmechError:
        """An error about an argument in Python, at the option that it came from."""
        remedy = error.remedy
        for python, options in _IN_PYTHON.items():
            remedy = remedy.replace(python, options)
        if remedy != error.remedy:
            error = type(error)(error.message, where=error.where, remedy=remedy)
        for action in self._command._actions:
            if action.dest == error.where and action.option_strings:
                return error.moved(action.option_strings[-1])
        return error

    @property
    def _command(self) -> argparse.ArgumentParser:
        """The parser of the command that was given."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                named = next((word for word in self.given if word in action.choices), None)
                return self if named is None else action.choices[named]
        return self

    def _unknown(self, word: str = "") -> str:
        """Of options that there are not: the nearest of the command, and that of one typed
        apart."""
        command, word = self._command, word.partition("=")[0]
        if _NUMBER.match(word):
            return _MINUS
        if word.startswith("-"):
            with suppress(LookupError):
                # refused with who has it
                extension(MEASURES, word.lstrip("-"))
            options = [text for action in command._actions for text in action.option_strings]
            close = difflib.get_close_matches(word, options, n=1)
            return f"Did you mean {close[0]}?" if close else f"Run {command.prog} --help"
        if all(action.option_strings for action in command._actions):
            return f"{command.prog} takes options only: leave {word!r} out"
        return f"Quote what has spaces in it, or run {command.prog} --help"


def _of_number(wanted: str, text: str) -> str | None:
    """Of a number with something behind it."""
    if percent := re.fullmatch(r"([0-9.]+) ?%", text):
        return f"Write {float(percent[1]) / 100:g}" if percent[1].count(".") < 2 else None
    if time := re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(s|sec|m|min|h)", text):
        return f"Write {float(time[1]) * {'m': 60, 'h': 3600}.get(time[2][0], 1):g}, in seconds"
    if re.fullmatch(r"[0-9]+,[0-9]+", text):
        return f"Write {text.replace(',', '.')}"
    return f"Give a {'whole number such as 10' if wanted == 'int' else 'number such as 0.01'}"


def of_gallery(error: OptmechError) -> OptmechError:
    """An error about a file that is not there, where its name is one of the gallery."""
    if not isinstance(error, ProblemError) or not error.message.startswith(_UNREADABLE):
        return error
    from optmech.files.gallery import not_a_file

    close, found = _near(error.where), not_a_file(error.where)
    if close is not None:
        error = ProblemError(error.message, where=error.where, remedy=f"Did you mean {close}?")
    return found or error


def _near(path: str) -> str | None:
    """A file beside the one that is not there, with nearly its name."""
    try:
        names = sorted(item.name for item in Path(path).parent.iterdir())
    except (OSError, ValueError):
        return None
    close = difflib.get_close_matches(Path(path).name[:80], names[:10_000], n=1, cutoff=0.75)
    return str(Path(path).with_name(close[0])) if close else None
