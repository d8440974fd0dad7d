"""What the text of the paper says about its figures and tables, evaluated with stored results."""
