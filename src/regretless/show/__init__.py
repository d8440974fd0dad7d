"""How results look: names, colours, curves for matplotlib and plotly, small HTML cards. No number of a result depends on it."""
