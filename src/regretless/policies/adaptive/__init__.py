"""The policy ``adaptive``: learners of several kinds that learn from every round, and how their predictions are joined."""
