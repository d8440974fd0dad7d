"""The figures and tables of the paper, as files for a LaTeX document."""
