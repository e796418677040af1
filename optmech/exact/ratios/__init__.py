"""Functions of likelihood ratios: generators of divergences, the hockey stick, enclosures."""
