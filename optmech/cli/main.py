"""``optmech``: parses arguments, runs a command, and turns every failure into one line."""

import argparse
import contextlib
import errno
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn, TextIO, cast

from optmech.base.extensions import COMMANDS as EXTENSIONS, added, extension
from optmech.cli.inputs import add_arguments
from optmech.cli.output import note, present, working
from optmech.cli.parser import Parser, joined, of_gallery
from optmech.errors import SOLVER_THREAD, OptmechError, ProblemError

COMMANDS = (
    "init",
    "plan",
    "solve",
    "show",
    "check",
    "attack",
    "measure",
    "sample",
    "report",
    "export",
    "adopt",
    "transport",
    "problems",
    "profiles",
    "schema",
    "completion",
)
INTERNAL_ERROR = 70
INTERRUPTED = 130
PIPE_CLOSED = 141

_EPILOG = """\
exit status:
  0  done, and every claim verified
  1  a check failed
  2  bad input or usage
  3  infeasible: no mechanism satisfies the constraints (of a mesh: none on it)
  4  stopped before any verified mechanism was found
  5  nothing was searched, as every engine broke off: the installation is at fault

example:
  optmech solve montreal-small -o design.json --picture design.png
"""


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"optmech {version('optmech')}")
        parser.exit()


def build_parser(given: Sequence[str] = ()) -> Parser:
    """The parser with one sub-command per module of ``optmech.cli.commands``; with the one alone
    that ``given`` begins with, as to import all of them takes longer than to parse."""
    parser = Parser(
        prog="optmech",
        description="Design provably optimal privacy mechanisms, and check them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    alone = given[:1] if given and given[0] in COMMANDS else None
    for name in alone or (*COMMANDS, *added(EXTENSIONS)):
        module = _module(name)
        summary = module.SUMMARY
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.{getattr(module, 'DETAILS', '')}",
            epilog=f"example:\n  {module.EXAMPLE}\n",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_arguments(command, getattr(module, "ARGUMENTS", {}))
        command.add_argument(
            "--json", action="store_true", help="print one JSON object on standard output"
        )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit status and never raises on bad input."""
    # what a command claims of standard output, it claims for itself only
    return copy_context().run(_main, argv)


def _main(argv: Sequence[str] | None) -> int:
    begun = time.monotonic()
    given = sys.argv[1:] if argv is None else list(argv)
    as_json, parser = False, build_parser(given)
    try:
        Parser.given = given
        try:
            args = parser.parse_args(joined(given))
        except SystemExit as stop:
            # what was asked for is printed: a help, or the version
            sys.stdout.flush()
            return int(stop.code or 0)
        if args.command is None:
            parser.print_help()
            sys.stdout.flush()
            return 0
        as_json, args.begun = args.json, begun
        with working(args):
            answer = _module(args.command).run(args)
        status = present(answer, args)
        sys.stdout.flush()
        return status
    except OptmechError as error:
        return _failed(parser.at_option(of_gallery(error)), as_json)
    except KeyboardInterrupt:
        note("optmech: error: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # nobody reads standard output any more, and Python would complain when closing it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return PIPE_CLOSED
    except (MemoryError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        what = "too deep" if deep else "the memory at hand does not suffice"
        return _failed(ProblemError(what, remedy="Use a coarser domain"), as_json)
    except Exception as error:
        if os.environ.get("OPTMECH_DEBUG"):
            raise
        text = " ".join(str(error).split())
        if type(error).__name__ == "LinAlgError":
            # what NumPy says where numbers are so far apart that nothing is left of the small ones
            what = f"the numbers are too far apart, or too large, to compute with ({text})"
            far = ProblemError(what, remedy="Use units in which they are moderate")
            return _failed(far, as_json)
        note(
            f"optmech: error: internal error: {type(error).__name__}: {text}. This is a bug in "
            f"{' or '.join(_suspects())}: please report it with the output under OPTMECH_DEBUG=1"
        )
        return INTERNAL_ERROR


def entry() -> NoReturn:
    """The console script."""
    import warnings

    if not sys.warnoptions:
        # numbers are checked where they matter; a library's warnings would only look like errors
        warnings.simplefilter("ignore")
    if "_ARGCOMPLETE" in os.environ:
        _module("completion").complete(build_parser())
    install()
    status = main()
    settle()
    if any(thread.name == SOLVER_THREAD for thread in threading.enumerate()):
        # a solver that did not react in time still runs: tearing Python down under it would abort
        os._exit(status)
    sys.exit(status)


def _module(name: str) -> ModuleType:
    if name not in COMMANDS:
        return cast(ModuleType, extension(EXTENSIONS, name))
    return import_module(f"optmech.cli.commands.{name.replace('-', '_')}")


def _suspects() -> list[str]:
    """The packages whose code may have run: ours, and those that kinds of constraints came from."""
    loaded = sys.modules.get("optmech.problem.constraint")
    kinds = loaded.kinds().values() if loaded else ()
    return list(dict.fromkeys(["optmech", *(cls.__module__.partition(".")[0] for cls in kinds)]))


def _failed(error: OptmechError, as_json: bool) -> int:
    errors: Sequence[OptmechError] = getattr(error, "errors", ()) or (error,)
    # only the list of a file's errors has lines of its own: any other break is a file's text
    for text in str(error).split("\n") if len(errors) > 1 else [str(error)]:
        note(f"optmech: error: {text}")
    if as_json:
        import json

        listed = [{"where": e.where, "message": e.message, "remedy": e.remedy} for e in errors]
        with contextlib.suppress(ProblemError, BrokenPipeError):
            print(json.dumps({"status": "error", "errors": listed}), flush=True)
    return error.exit_status


_FIRST_FREE = 3
"""The descriptors below belong to standard streams, open or closed."""


class _Stream:
    """A text stream, after whose first failure nothing is written any more."""

    def __init__(self, stream: TextIO, lose: Callable[[OSError], None]) -> None:
        self._stream, self._lose = stream, lose
        self._lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write all of it."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        self._try(self._stream.flush)

    def _try(self, action: Callable[[], object]) -> None:
        if self._lost:
            return
        try:
            action()
        except OSError as error:
            self._lost = True
            # what is in the buffer would fail again when Python ends
            with contextlib.suppress(OSError, ValueError):
                _lead_nowhere(self._stream.fileno())
            self._lose(error)


def _refuse(error: OSError) -> None:
    """Standard output raises ProblemError, once, where the system takes no more."""
    if isinstance(error, BrokenPipeError):
        raise error
    reason = "it is closed" if error.errno == errno.EBADF else error.strerror or error
    raise ProblemError(
        f"cannot be written: {reason}",
        where="standard output",
        remedy="Lead it to a file or a pipe that takes what is printed",
    ) from error


def install() -> None:
    """Put streams in the place of Python's that fail in words.

    What was closed before the start is opened, for nothing to be read or written: a file opened
    later would get its number, and what is printed.
    """
    with contextlib.suppress(OSError):
        while (descriptor := os.open(os.devnull, os.O_RDONLY)) < _FIRST_FREE:
            pass
        os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = io.StringIO()
    sys.stdout = cast(TextIO, _Stream(_opened(sys.stdout, 1), _refuse))
    # of standard error nobody can be told: the exit status says how a command ended
    sys.stderr = cast(TextIO, _Stream(_opened(sys.stderr, 2), lambda error: None))


def settle() -> None:
    """Hand on what is left in both, or lose it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ProblemError, OSError):
            stream.flush()


def _opened(stream: TextIO | None, descriptor: int) -> TextIO:
    """The stream, or one that takes nothing in the place of a closed one."""
    if stream is None:
        raw = io.FileIO(descriptor, "w", closefd=False)
        stream = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", write_through=True)
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return stream


def _lead_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
