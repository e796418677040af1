"""What every other part stands on: arrays, checks, files, memory, the machine."""
