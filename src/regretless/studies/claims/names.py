"""Names that the claims share: benchmarks, arms, and groups of one arm."""

from regretless.studies.claims.forms import Arm, Group, Lower

SYNTHETIC = ("topk", "shortest_path", "pricing")
ALL = (*SYNTHETIC, "energy")
BANDITS = ("greedy", "epsilon_greedy", "thompson")
HYBRID, PLUG_IN, SCORE = "dfhpg", "dfhpg_0", "dfhpg_1"
NAMES = {"topk": "top-k", "shortest_path": "shortest path", "pricing": "pricing", "energy": "energy"}
SAID = {HYBRID: "DFHPG", PLUG_IN: "DFHPG-0", SCORE: "DFHPG-1"}
SURROGATES = (
    "spo_plus", "mse_spo_plus", "dbb", "imle", "aimle", "nid", "pfyl", "dpo", "pg", "nce", "nce_c", "contrastive_map", "map_c",
    "pointwise_ltr", "pairwise_diff", "pairwise_ltr", "listwise_ltr", "spo_caching",
)  # fmt: skip
DEGREES = ("2", "4", "6", "8", "10")
MODELS = ("gaussian_linear", "flow", "diffusion")
EARLY = 1000
"""The round at which "early" is looked at in the comparison of models."""


def one(label: str, study: str = "main", cell: str = "", rounds: int | None = None) -> Group:
    """A group of one arm."""
    return (Arm(label, study, cell, rounds),)


def below(label: str, others: tuple[str, ...], study: str = "main", cell: str = "", rounds: int | None = None) -> Lower:
    """One arm against each of the others in the same cell."""
    return Lower(tuple((one(label, study, cell, rounds), one(other, study, cell, rounds)) for other in others))
