"""What the paper's text says about its figures and tables, line by line, judged by stored results."""
