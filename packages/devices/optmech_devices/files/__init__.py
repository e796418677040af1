"""What the core is told of the files of devices, by the kind of each."""
