"""The policy ``adaptive``: learners of several kinds, all of which learn from every round, and how their predictions are joined."""
