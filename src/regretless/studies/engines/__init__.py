"""Who computes the cells of a campaign: several processes, or a Ray cluster."""
