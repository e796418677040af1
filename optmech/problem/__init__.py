"""What is wanted: constraints, the objective, the problem."""
