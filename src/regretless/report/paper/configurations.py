"""The paper's tables of selected configurations in LaTeX, with the paper's symbols in the head."""

from regretless.report import presets_section
from regretless.report.words import latex_text
from regretless.show.figures import named

HEADS = {
    "benchmark": "Benchmark", "model": "Class", "policy_lr": r"$\eta_\theta^0$", "nuisance.lr": r"$\eta_\phi^0$",
    "surrogate": "Surrogate", "exploration_scale": r"$\sigma_{\mathrm{G}}$", "alpha.max": r"$\alpha_{\max}$",
    "alpha.min": r"$\alpha_{\min}$", "alpha.time_scale": r"$\tau_{\mathrm{sched}}$", "baseline": "Base",
    "normalize_gradients": "Norm", "generative.scenarios": "$K$", "generative.kappa_dfl": r"$\kappa_{\mathrm{dfl}}$",
    "generative.lambda_reg": r"$\lambda_{\mathrm{reg}}$", "model.train_steps": "Train", "model.sample_steps": "Sample",
    "model.weights": "Weights",
}  # fmt: skip
LEFT_OUT = ("degree", "alpha.gate")
"""Columns that others imply: the synthetic benchmarks have degree 8, and a time scale belongs to the exponential gate."""

SHORT = {"moving_average": "ma", "nuisance_induced": "ni", "true": "yes", "false": "no"}
ABOUT = (
    "Base: moving-average (ma) or nuisance-induced (ni) baseline; Norm: whether both gradients are brought to unit length; "
    "a time scale belongs to the exponential gate, the others use a warm-up. Synthetic benchmarks have degree 8."
)


def latex(title: str) -> str:
    """One of the tables, ``title`` as ``presets_section.TABLES`` has it."""
    names = presets_section.head(title)
    kept = [index for index, name in enumerate(names) if name not in LEFT_OUT]
    head = " & ".join(HEADS.get(names[index], latex_text(names[index])) for index in kept)
    lines = [" & ".join(_cell(line[index]) for index in kept) + r" \\" for line in presets_section.rows(title)]
    top = [rf"\begin{{tabular}}{{ll{'c' * (len(kept) - 2)}}}", r"\toprule", rf"{head} \\", r"\midrule"]
    return "\n".join([*top, *lines, r"\bottomrule", r"\end{tabular}", ""])


def _cell(words: str) -> str:
    return latex_text(SHORT.get(words, named(words)))
