"""What files ask for, as objects that answer: designs, coupling mechanisms, noise, chains."""
