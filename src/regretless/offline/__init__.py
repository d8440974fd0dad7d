"""Train decision-focused models offline, on complete costs or on logs of decisions."""
