"""One module per command: SUMMARY, EXAMPLE, ``add_arguments(parser)`` and ``run(args)``."""
