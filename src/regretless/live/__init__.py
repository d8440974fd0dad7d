"""The live learner: decisions and feedback one at a time, a durable store, a guard, health and evaluation."""
