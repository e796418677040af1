"""Tables and values that files of every kind share, as pydantic models: sets, priors, distances.

Imported only when a file is read. These say which keys exist and what type and range their
values have; what they mean together is decided where they are built.
"""
