"""The claims of the abstract and of the appendices on methods: baselines of the score term, solves, generative models."""

from regretless.studies.claims.forms import Arm, Calmer, Counted, Line, Lower, Quieter, Untested
from regretless.studies.claims.names import ALL, BANDITS, HYBRID, NAMES, SCORE, one

ROUNDS = 2000
"""The longest that the contextual bandits are played; energy has 395."""

INDUCED = ("shortest_path", "pricing", "energy")
"""Benchmarks whose preset has the nuisance-induced baseline."""

BASELINES = (("moving_average", 0), ("nuisance_induced", 1))
"""Solves per round that a baseline adds."""

ORACLE_CALLS = (
    ("spo_plus", 2), ("mse_spo_plus", 2), ("dbb", 2), ("imle", 20), ("aimle", 20), ("nid", 0), ("pfyl", 11), ("dpo", 10),
    ("pg", 2),
)  # fmt: skip
"""Solves per gradient of the surrogates that the paper calls oracle-call surrogates, with ten draws of noise."""


def control_variates() -> list[Line]:
    """Appendix I on the baselines of the score term."""
    lines = []
    for name in ALL:
        words = f"{NAMES[name]}, DFHPG-1: the moving average reduces the variance of the score term"
        lines.append(Line(1626, words, name, Calmer(Arm(SCORE))))
        words = f"{NAMES[name]}, DFHPG-1: the moving average is never noisier than the total itself"
        lines.append(Line(1635, words, name, Quieter(Arm(SCORE))))
    for name in INDUCED:
        words = f"{NAMES[name]}, DFHPG: the nuisance-induced baseline reduces the variance of the score term"
        lines.append(Line(1626, words, name, Calmer(Arm(HYBRID))))
    return lines


def cost_per_round() -> list[Line]:
    """Appendices I and K.3 on how often a round solves."""
    quantity = "solves per round"
    return [
        Line(1635, "the moving average costs nothing", "topk", Counted(quantity, BASELINES[:1], 0, 0)),
        Line(1648, "the nuisance-induced baseline adds one solve per round", "topk", Counted(quantity, BASELINES[1:], 1, 1)),
        Line(1743, "oracle-call surrogates solve once or twice per gradient", "topk",
             Counted("solves per gradient", ORACLE_CALLS, 1, 2)),
    ]  # fmt: skip


def generative() -> list[Line]:
    """The abstract on generative models, and Appendix H on their regulariser."""
    lines = []
    for name in ALL:
        rounds = None if name == "energy" else ROUNDS
        for model in ("flow", "diffusion"):
            pairs = tuple((one(HYBRID, "models", model, rounds), one(label)) for label in BANDITS)
            when = "" if rounds is None else f" (round {ROUNDS:,})"
            words = f"{NAMES[name]}: DFHPG with the {model} is below the contextual bandits{when}"
            lines.append(Line(79, words, name, Lower(pairs)))
    why = "no study plays generative.lambda_reg=0"
    words = "without the regulariser the scenarios drift away from the distribution of the cost"
    return [*lines, Line(1615, words, "topk", Untested(why))]


def lines() -> list[Line]:
    """All of them."""
    return [*control_variates(), *cost_per_round(), *generative()]
