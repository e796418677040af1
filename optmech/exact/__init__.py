"""Numbers kept exact: fractions and logarithms, whole numbers, enclosures, exact sampling."""
