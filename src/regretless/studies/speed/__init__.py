"""How fast the program is: simulations, the live learner, the scheduling oracle, tuning."""
