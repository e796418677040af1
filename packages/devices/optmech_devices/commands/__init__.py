"""Commands for devices, and what else ``optmech measure`` measures."""
