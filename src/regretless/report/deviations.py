"""Where the presets differ from the paper's text, and the setting that follows the text instead."""

from regretless.report.html import Markup, row, table, tag, text

HEAD = ("what", "presets", "the paper's text", "option")
ROWS = (
    ("top-k cost", "c = +u, pick the k cheapest", "c = −u", "--set benchmark.sign=-1"),
    ("where the surrogate is evaluated", "at the mean μ_θ(x)", "at the sample ĉ", "--set surrogate_at=sample"),
    (
        "gradient normalisation",
        "per preset; five linear and neural presets have none",
        "always",
        "--set normalize_gradients=true",
    ),
    ("target of α after the gate", "follows the nuisance's error", "α_min", "--set alpha.target=minimum"),
    ("squared loss of Thompson", "the regression's", "a likelihood", ""),
    ("pricing demand", "capped at 50 before the softplus", "no cap", ""),
    ("mse_spo_plus", "β · 2(ĉ − c)", "β · (ĉ − c)", ""),
    ("pairwise_ltr", "mean over pairs", "sum over pairs", ""),
    (
        "generative: gradient of a scenario",
        "its own, (1/K) Σ ⟨ĉ_k, g_k⟩",
        "the average of all",
        "--set generative.scenario_gradient=averaged (or saa)",
    ),
    (
        "generative: where the regulariser is taken",
        "at the target c̃",
        "at a fresh sample",
        "--set generative.regulariser_at=sample",
    ),
    (
        "generative: denoising loss",
        "weighted by √(1 − ᾱ) (energy: the bound's weights without t = 0)",
        "unweighted",
        "--set model.weights=root or elbo",
    ),
    (
        "generative: orientation of the surrogates",
        "minimise",
        "– (the authors' runs maximise)",
        "--set generative.orientation=published",
    ),
    ("signs of dbb, imle, aimle, pfyl, pg, listwise_ltr, spo_caching", "descend", "ascend as printed", ""),
)
WORDS = "The presets follow what produced the published tables; where the paper's text says otherwise, the text is an option."


def section() -> Markup:
    """The list on the page."""
    body = [
        row(*(tag("code", text(cell)) if cell.startswith("--") else text(cell or "–") for cell in line))
        for line in ROWS
    ]
    card = tag("div", table(HEAD, body), class_="card prose")
    return tag("section", tag("h2", text("Deviations")), tag("p", text(WORDS)), card, id="deviations")


def markdown() -> list[str]:
    """The list for the documentation."""
    lines = ["## Deviations", "", WORDS, "", f"| {' | '.join(HEAD)} |", "| --- | --- | --- | --- |"]
    for *told, option in ROWS:
        lines.append(f"| {' | '.join(told)} | {f'`{option}`' if option else '–'} |")
    more = "What is ours on purpose, and why: [The algorithm](algorithm.md#ours-on-purpose)."
    return [*lines, "", more, ""]
