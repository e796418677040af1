"""What can be said of any mechanism: measures, attacks, guarantees."""
