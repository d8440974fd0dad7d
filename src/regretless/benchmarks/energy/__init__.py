"""Energy-cost-aware scheduling on the SEMO prices: where the data are, how they are prepared, the stream of days."""
