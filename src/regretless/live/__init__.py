"""What a live learner is made of beside its policy: feedback as it arrives, waiting decisions, scaling, health, checkpoints."""
