"""One module per command: SUMMARY, EXAMPLE, ``run(args)``; where there are some, ARGUMENTS."""
