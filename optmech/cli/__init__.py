"""The command line. Importing it costs nothing: each command imports what it needs when run."""
