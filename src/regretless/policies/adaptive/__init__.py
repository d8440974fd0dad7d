"""The default policy: several learners of the cost, and one prediction made of theirs."""
