"""Noise that is added to a whole number, exactly: its law with its tails, what privacy it gives,
the lower bound of all such noise, and files that prove both."""
