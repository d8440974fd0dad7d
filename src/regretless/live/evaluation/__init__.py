"""What a policy would have paid in rounds that somebody else decided: estimates with intervals, or that it cannot be told."""
