"""What a live learner is made of beside its policy: feedback as it arrives, programs, bookkeeping, health, checkpoints."""
