"""``optmech client``: readers of packed files, to be taken along."""

from argparse import Namespace

from optmech.cli.inputs import option
from optmech.cli.output import Answer, Facts, named

SUMMARY = "copy out a reader of packed files: C, JavaScript, or a browser's extension"
EXAMPLE = "optmech client c firmware/optmech"
_NEXT = {
    "c": "cc -std=c99 -DRADIO_MAIN optmech.c radio.c -o radio makes the example of a radio",
    "js": "npm pack makes a package of it; README.md is its description",
    "extension": "load the folder at chrome://extensions (developer mode, load unpacked)",
}


ARGUMENTS = {
    "kind": option(
        "c: C99, one header and one source; js: an npm package with types; extension: for all "
        "pages of a browser",
        choices=tuple(_NEXT),
    ),
    "folder DIR": "a folder that is new or empty",
    "--mechanism CITY.omm": "put this packed file beside it, as mechanism.omm",
}


def run(args: Namespace) -> Answer:
    """Write the files, and name them."""
    from optmech_devices.packed.clients import copy_client

    written = copy_client(args.kind, args.folder, args.mechanism)
    size = sum(path.stat().st_size for path in written)
    facts = {
        "files": f"{len(written)} in {args.folder}, {size:,} bytes",
        "next": _NEXT[args.kind],
    }
    values = {**named(args, "kind", "folder"), "files": list(map(str, written))}
    return Answer(values, [Facts(facts)])
