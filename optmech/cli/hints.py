"""Remedies for mistakes on the command line, in its own words."""

import argparse
import difflib
import re
from collections.abc import Sequence
from pathlib import Path

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


def usage_remedy(parser: argparse.ArgumentParser, message: str, given: Sequence[str]) -> str:
    """What to do about a usage error of ``argparse``."""
    help_at = f"Run {parser.prog} --help"
    if message.startswith("unrecognized arguments: "):
        # an argument may be blank
        return _of_unknown(parser, message.split()[2:] or [""], given) or help_at
    if "invalid float value" in message or "invalid int value" in message:
        return _of_number(message) or help_at
    if "are required: " in message and any(map(_NUMBER.match, given)):
        return _MINUS
    return help_at


def as_option(
    error: OptmechError, parser: argparse.ArgumentParser, given: Sequence[str]
) -> OptmechError:
    """An error about an argument in Python, at the option of the command that it came from."""
    command, remedy = _command(parser, given) or parser, error.remedy
    for python, options in _IN_PYTHON.items():
        remedy = remedy.replace(python, options)
    if remedy != error.remedy:
        error = type(error)(error.message, where=error.where, remedy=remedy)
    for action in command._actions:
        if action.dest == error.where and action.option_strings:
            return error.moved(action.option_strings[-1])
    return error


def _of_unknown(
    parser: argparse.ArgumentParser, words: Sequence[str], given: Sequence[str]
) -> str | None:
    """Of options that there are not: the nearest of the command, and that of one typed apart."""
    command = _command(parser, given)
    if command is None:
        return None
    word = words[0].partition("=")[0]
    if _NUMBER.match(word):
        return _MINUS
    if word.startswith("-"):
        options = [text for action in command._actions for text in action.option_strings]
        close = difflib.get_close_matches(word, options, n=1)
        if close:
            return f"Did you mean {close[0]}?"
    elif not any(not action.option_strings for action in command._actions):
        return f"{command.prog} takes options only: leave {word!r} out"
    else:
        return f"Quote what has spaces in it, or run {command.prog} --help"
    return f"Run {command.prog} --help"


def _command(
    parser: argparse.ArgumentParser, given: Sequence[str]
) -> argparse.ArgumentParser | None:
    """The parser of the command that was given."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            named = next((word for word in given if word in action.choices), None)
            return parser if named is None else action.choices[named]
    return parser


def _of_number(message: str) -> str | None:
    """Of a number with something behind it."""
    found = re.search(r"invalid (float|int) value: '(.*)'$", message)
    if found is None:
        return None
    text = found[2].strip()
    if percent := re.fullmatch(r"([0-9.]+) ?%", text):
        return f"Write {float(percent[1]) / 100:g}" if percent[1].count(".") < 2 else None
    if time := re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(s|sec|m|min|h)", text):
        return f"Write {float(time[1]) * {'m': 60, 'h': 3600}.get(time[2][0], 1):g}, in seconds"
    if re.fullmatch(r"[0-9]+,[0-9]+", text):
        return f"Write {text.replace(',', '.')}"
    kind = "a whole number such as 10" if found[1] == "int" else "a number such as 0.01"
    return f"Give {kind}"


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
