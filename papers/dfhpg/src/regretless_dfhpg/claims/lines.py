"""The claims of the experimental section and the appendices about figures and tables, one line of data each."""

import itertools

from regretless_dfhpg.claims.statistics import (
    ArmGroup,
    BaselineReducesVariance,
    BaselineVariesLess,
    Claim,
    ClaimArm,
    CountsInRange,
    CurveCrossing,
    DifferentLeaders,
    LowerRegret,
    LowerSpread,
    NoDifference,
    NoStudy,
    NotHigherRegret,
    RegretRatio,
    WiderErrors,
)
from regretless_dfhpg.studies import SURROGATES

SYNTHETIC = ("topk", "shortest_path", "pricing")
ALL = (*SYNTHETIC, "energy")
BANDITS = ("greedy", "epsilon_greedy", "thompson")
HYBRID, PLUG_IN, SCORE = "dfhpg", "dfhpg_0", "dfhpg_1"
TITLES = {
    "topk": "top-k",
    "shortest_path": "shortest path",
    "pricing": "pricing",
    "energy": "energy",
    HYBRID: "DFHPG",
    PLUG_IN: "DFHPG-0",
    SCORE: "DFHPG-1",
}
"""Benchmarks and policies as the claims name them."""
DEGREES = ("2", "4", "6", "8", "10")
MODELS = ("gaussian_linear", "flow", "diffusion")
EARLY = 1000
"""The round that "early" means in the comparison of models."""


def one(label: str, study: str = "main", cell: str = "", rounds: int | None = None) -> ArmGroup:
    """Return a group of one arm."""
    return (ClaimArm(label, study, cell, rounds),)


def below(
    label: str, others: tuple[str, ...], study: str = "main", cell: str = "", rounds: int | None = None
) -> LowerRegret:
    """Compare one arm with each of the others in the same cell."""
    return LowerRegret(tuple((one(label, study, cell, rounds), one(other, study, cell, rounds)) for other in others))


def with_surrogates(names: tuple[str, ...], policy: str, benchmark: str = "") -> ArmGroup:
    """Return the arms of a policy with each of these surrogates."""
    return tuple(ClaimArm(f"{name}/{policy}", "surrogates", benchmark=benchmark) for name in names)


def leading(names: tuple[str, ...], policy: str) -> LowerRegret:
    """Compare these surrogates with the average of the others."""
    rest = tuple(name for name in SURROGATES if name not in names)
    return LowerRegret(((with_surrogates(names, policy), with_surrogates(rest, policy)),))


def trailing(names: tuple[str, ...], policy: str) -> LowerRegret:
    """Compare the other surrogates with the average of these."""
    rest = tuple(name for name in SURROGATES if name not in names)
    return LowerRegret(((with_surrogates(rest, policy), with_surrogates(names, policy)),))


def main_table() -> list[Claim]:
    """Section 3.3 on the main table, and the conclusion."""
    lines = []
    for name in SYNTHETIC:
        others = (*BANDITS, SCORE, PLUG_IN)
        lines.append(
            Claim(
                335,
                f"bandit feedback: DFHPG has the lowest regret on {TITLES[name]}",
                name,
                below(HYBRID, others),
            )
        )
        lines.append(
            Claim(
                335,
                f"bandit feedback: DFHPG-0 is second on {TITLES[name]}",
                name,
                below(PLUG_IN, (*BANDITS, SCORE)),
            )
        )
    for policy in (HYBRID, PLUG_IN):
        text = f"energy: the contextual bandits have 1.7 to 1.9 times the regret of {TITLES[policy]}"
        bandits = tuple(ClaimArm(label) for label in BANDITS)
        lines.append(Claim(335, text, "energy", RegretRatio(bandits, one(policy), 1.6, 2.0)))
    text = "energy: DFHPG-0 and DFHPG are about equal, DFHPG-0 slightly lower"
    lines.append(Claim(335, text, "energy", NotHigherRegret(((one(PLUG_IN), one(HYBRID)),))))
    pairs = tuple((one(other), one(SCORE)) for other in (HYBRID, PLUG_IN))
    lines.append(Claim(335, "energy: DFHPG-1 has higher regret than DFHPG and DFHPG-0", "energy", LowerRegret(pairs)))
    for name in ALL:
        low, high = (0.25, 0.5) if name in SYNTHETIC else (0.55, 0.75)
        share = "25 to 50" if name in SYNTHETIC else "about 65"
        text = f"semi-bandit feedback leaves {share} % of DFHPG's regret on {TITLES[name]}"
        lines.append(Claim(335, text, name, RegretRatio(one(HYBRID, "semi_bandit"), one(HYBRID), low, high)))
        text = f"semi-bandit feedback: DFHPG-0 has the lowest regret on {TITLES[name]}"
        lines.append(Claim(335, text, name, below(PLUG_IN, (*BANDITS, HYBRID), "semi_bandit")))
    for name in ALL:
        for policy in (HYBRID, PLUG_IN):
            text = f"{TITLES[policy]} ends below the contextual bandits and the score alone on {TITLES[name]}"
            lines.append(Claim(419, text, name, below(policy, (*BANDITS, SCORE))))
    return lines


def convergence() -> list[Claim]:
    """Section 3.3 and Appendix K.1 on the first 600 rounds."""
    early = (one(SCORE, "convergence", rounds=150), one(PLUG_IN, "convergence", rounds=150))
    late = (one(PLUG_IN, "convergence", rounds=600), one(SCORE, "convergence", rounds=600))
    crossing = CurveCrossing(ClaimArm(SCORE, "convergence"), ClaimArm(PLUG_IN, "convergence"), 200, 400)
    others = tuple(name for name in (*BANDITS, SCORE))
    apart = (
        below(HYBRID, others, "convergence", rounds=600).pairs + below(PLUG_IN, others, "convergence", rounds=600).pairs
    )
    tracks = RegretRatio(
        one(SCORE, "convergence", rounds=600), tuple(ClaimArm(b, "convergence", "", 600) for b in BANDITS), 0.75, 1.25
    )
    every = (*BANDITS, SCORE, PLUG_IN)
    return [
        Claim(413, "top-k: DFHPG-1 is below DFHPG-0 in the beginning (round 150)", "topk", LowerRegret((early,))),
        Claim(413, "top-k: the order of DFHPG-1 and DFHPG-0 reverses at about round 300", "topk", crossing),
        Claim(413, "top-k: DFHPG-0 is below DFHPG-1 at round 600", "topk", LowerRegret((late,))),
        Claim(
            413,
            "top-k: DFHPG ends below the contextual bandits",
            "topk",
            below(HYBRID, BANDITS, "convergence", rounds=600),
        ),
        Claim(
            1683,
            "shortest path: DFHPG is the lowest curve at round 600",
            "shortest_path",
            below(HYBRID, every, "convergence", rounds=600),
        ),
        Claim(1683, "pricing: DFHPG and DFHPG-0 are apart from the rest at round 600", "pricing", LowerRegret(apart)),
        Claim(
            1683,
            "pricing: DFHPG-1 behaves like the contextual bandits (within a quarter at round 600)",
            "pricing",
            tracks,
        ),
    ]


def models() -> list[Claim]:
    """Section 3.3 and Appendix K.2 on the models of the cost."""

    def model(name: str, rounds: int | None = None) -> ArmGroup:
        return one(HYBRID, "models", name, rounds)

    lines = []
    for name in SYNTHETIC:
        at = 415 if name == "pricing" else 1713
        early = tuple((model(MODELS[0], EARLY), model(other, EARLY)) for other in MODELS[1:])
        lines.append(
            Claim(at, f"{TITLES[name]}: the linear model leads early (round {EARLY:,})", name, LowerRegret(early))
        )
        final = tuple((model("flow"), model(other)) for other in (MODELS[0], "diffusion"))
        lines.append(Claim(at, f"{TITLES[name]}: the flow reaches the lowest final regret", name, LowerRegret(final)))
        trails: tuple[tuple[ArmGroup, ArmGroup], ...] = ((model("flow"), model("diffusion")),)
        if name != "pricing":
            trails += ((model(MODELS[0]), model("diffusion")),)
        text = "the flow does better than diffusion" if name == "pricing" else "diffusion trails"
        lines.append(Claim(at, f"{TITLES[name]}: {text}", name, LowerRegret(trails)))
    pairs = tuple((model(a), model(b)) for a, b in (MODELS[:2], MODELS[::2], MODELS[1:]))
    lines.append(Claim(1713, "energy: the models differ by no more than runs do", "energy", NoDifference(pairs)))
    return lines


def surrogates() -> list[Claim]:
    """Appendix K.4 on the heat maps."""
    lines = []
    leaders = ("contrastive_map", "dbb", "pairwise_diff", "listwise_ltr")
    for policy in (HYBRID, PLUG_IN):
        text = f"pricing, {TITLES[policy]}: contrastive_map, dbb, pairwise_diff and listwise_ltr lead"
        lines.append(Claim(1823, text, "pricing", leading(leaders, policy)))
        text = f"pricing, {TITLES[policy]}: nid and mse_spo_plus trail"
        lines.append(Claim(1823, text, "pricing", trailing(("nid", "mse_spo_plus"), policy)))
    flat = ("aimle", "pairwise_diff", "nid", "dpo", "pfyl", "pg")
    both = {policy: tuple(with_surrogates((name,), policy) for name in SURROGATES) for policy in (HYBRID, PLUG_IN)}
    lines += [
        Claim(
            1823,
            "shortest path, DFHPG: aimle, pairwise_diff, nid, dpo, pfyl and pg lead",
            "shortest_path",
            leading(flat, HYBRID),
        ),
        Claim(
            1823,
            "shortest path, DFHPG-0: spo_plus, spo_caching and aimle lead",
            "shortest_path",
            leading(("spo_plus", "spo_caching", "aimle"), PLUG_IN),
        ),
        Claim(
            1823,
            "top-k, DFHPG: nid, pairwise_diff and mse_spo_plus lead",
            "topk",
            leading(("nid", "pairwise_diff", "mse_spo_plus"), HYBRID),
        ),
        Claim(
            1823,
            "top-k, DFHPG-0: nid and the SPO losses lead",
            "topk",
            leading(("nid", "spo_plus", "mse_spo_plus", "spo_caching"), PLUG_IN),
        ),
    ]
    for policy in (HYBRID, PLUG_IN):
        text = f"energy, {TITLES[policy]}: pairwise_diff, mse_spo_plus, imle and nce lead"
        lines.append(Claim(1823, text, "energy", leading(("pairwise_diff", "mse_spo_plus", "imle", "nce"), policy)))
        text = f"energy, {TITLES[policy]}: dbb and contrastive_map are in the worse half"
        lines.append(Claim(1823, text, "energy", trailing(("dbb", "contrastive_map"), policy)))
        rest = tuple(name for name in SURROGATES if name not in ("pg", "dpo"))
        collapse = RegretRatio(with_surrogates(("pg", "dpo"), policy), with_surrogates(rest, policy), 5.0, 50.0)
        lines.append(
            Claim(
                1823,
                f"energy, {TITLES[policy]}: pg and dpo are worse by an order of magnitude",
                "energy",
                collapse,
            )
        )
    for policy in (HYBRID, PLUG_IN):
        panels = tuple(tuple(with_surrogates((name,), policy, place) for name in SURROGATES) for place in ALL)
        text = f"{TITLES[policy]}: no single surrogate is the best on all four benchmarks"
        lines.append(Claim(1823, text, "topk", DifferentLeaders(panels)))
    for name in ALL:
        text = f"{TITLES[name]}: DFHPG is no more sensitive to the surrogate than DFHPG-0"
        lines.append(Claim(1823, text, name, LowerSpread(both[HYBRID], both[PLUG_IN])))
    return lines


def mixing() -> list[Claim]:
    """Appendix K.5 on the mixing weight."""
    schedule = one("schedule", "alpha")
    fixed = {value: one(f"α = {value}", "alpha") for value in ("0", "0.25", "0.5", "0.75", "1")}
    lines = [
        Claim(
            1828,
            f"{TITLES[name]}: the schedule matches or improves on every fixed α",
            name,
            NotHigherRegret(tuple((schedule, group) for group in fixed.values())),
        )
        for name in SYNTHETIC
    ]
    small = tuple((fixed[value], schedule) for value in ("0", "0.25"))
    hurts = tuple((fixed["0"], fixed[value]) for value in ("0.25", "0.5", "0.75", "1"))
    lines.append(Claim(1828, "energy: the schedule trails the smaller fixed α", "energy", LowerRegret(small)))
    lines.append(Claim(1828, "energy: any positive weight on the score hurts", "energy", LowerRegret(hurts)))
    return lines


def difficulty() -> list[Claim]:
    """Appendix K.6 on the degree of the costs."""
    lines = []
    for name in SYNTHETIC:
        rises = tuple(
            (one(label, "degree", a), one(label, "degree", b))
            for label in (*BANDITS, SCORE, HYBRID, PLUG_IN)
            for a, b in itertools.pairwise(DEGREES)
        )
        lines.append(
            Claim(1861, f"{TITLES[name]}: every method's regret rises with the degree", name, LowerRegret(rises))
        )
        for policy in (HYBRID, PLUG_IN):
            pairs = tuple(pair for value in DEGREES for pair in below(policy, BANDITS, "degree", value).pairs)
            text = f"{TITLES[name]}: {TITLES[policy]} keeps its advantage over the contextual bandits at every degree"
            lines.append(Claim(1861, text, name, LowerRegret(pairs)))
        bandits = tuple(ClaimArm(label, "degree", value) for label in BANDITS for value in DEGREES)
        scores = tuple(ClaimArm(SCORE, "degree", value) for value in DEGREES)
        text = f"{TITLES[name]}: DFHPG-1 largely tracks the contextual bandits (within a quarter over all degrees)"
        lines.append(Claim(1861, text, name, RegretRatio(scores, bandits, 0.75, 1.25)))
    for name, value, low, high, text in (
        ("pricing", "2", 10.0, 1e9, "more than ten times"),
        ("pricing", "10", 1.0, 3.0, "a narrow gap at degree 10: less than three times"),
        ("topk", "2", 1.5, 2.5, "around twice"),
        *(("topk", value, 3.5, 5.5, "four to five times") for value in DEGREES[1:]),
        *(("shortest_path", value, 1.0, 1.5, "little more than") for value in DEGREES),
    ):
        bandits = tuple(ClaimArm(label, "degree", value) for label in BANDITS)
        sentence = f"{TITLES[name]}, degree {value}: the contextual bandits have {text} the regret of DFHPG"
        lines.append(Claim(1861, sentence, name, RegretRatio(bandits, one(HYBRID, "degree", value), low, high)))
    return lines


def feedback() -> list[Claim]:
    """Appendix K.7 on the three feedback modes."""
    lines = []
    modes = ("bandit", "semi_bandit", "full")
    for name in ALL:
        for policy in (HYBRID, PLUG_IN):
            pairs = tuple(
                (one(policy, "feedback", richer), one(policy, "feedback", poorer))
                for poorer, richer in itertools.pairwise(modes)
            )
            text = f"{TITLES[name]}: {TITLES[policy]}'s regret falls as feedback becomes richer"
            lines.append(Claim(1889, text, name, LowerRegret(pairs)))
    for mode in modes[1:]:
        wider = WiderErrors(ClaimArm(HYBRID, "feedback", "bandit"), ClaimArm(HYBRID, "feedback", mode), 5.0)
        lines.append(
            Claim(1889, f"energy: error bars are about ten times as wide as with {mode} feedback", "energy", wider)
        )
    twice = RegretRatio(one("thompson", "semi_bandit"), one(PLUG_IN, "semi_bandit"), 1.5, 2.5)
    lines.append(Claim(1891, "pricing, semi-bandit: Thompson has about twice the regret of DFHPG-0", "pricing", twice))
    for name in ("topk", "shortest_path", "energy"):
        text = f"{TITLES[name]}, semi-bandit: Thompson is no closer to DFHPG-0 than that (pricing is the closest)"
        further = RegretRatio(one("thompson", "semi_bandit"), one(PLUG_IN, "semi_bandit"), 2.0, 1e9)
        lines.append(Claim(1891, text, name, further))
    return lines


ROUNDS = 2000
"""The longest that the contextual bandits are played; energy has 395."""

INDUCED = ("shortest_path", "pricing", "energy")
"""Benchmarks whose preset has the nuisance-induced baseline."""

BASELINES = (("moving_average", 0), ("nuisance_induced", 1))
"""Solves per round that a baseline adds."""

ORACLE_CALLS = (
    ("spo_plus", 2),
    ("mse_spo_plus", 2),
    ("dbb", 2),
    ("imle", 20),
    ("aimle", 20),
    ("nid", 0),
    ("pfyl", 11),
    ("dpo", 10),
    ("pg", 2),
)
"""Solves per gradient of the surrogates that the paper calls oracle-call surrogates, with ten draws of noise."""


def control_variates() -> list[Claim]:
    """Appendix I on the baselines of the score term."""
    lines = []
    for name in ALL:
        text = f"{TITLES[name]}, DFHPG-1: the moving average reduces the variance of the score term"
        lines.append(Claim(1626, text, name, BaselineReducesVariance(ClaimArm(SCORE))))
        text = f"{TITLES[name]}, DFHPG-1: the moving average is never noisier than the total itself"
        lines.append(Claim(1635, text, name, BaselineVariesLess(ClaimArm(SCORE))))
    for name in INDUCED:
        text = f"{TITLES[name]}, DFHPG: the nuisance-induced baseline reduces the variance of the score term"
        lines.append(Claim(1626, text, name, BaselineReducesVariance(ClaimArm(HYBRID))))
    return lines


def cost_per_round() -> list[Claim]:
    """Appendices I and K.3 on how often a round solves."""
    quantity = "solves per round"
    return [
        Claim(1635, "the moving average costs nothing", "topk", CountsInRange(quantity, BASELINES[:1], 0, 0)),
        Claim(
            1648,
            "the nuisance-induced baseline adds one solve per round",
            "topk",
            CountsInRange(quantity, BASELINES[1:], 1, 1),
        ),
        Claim(
            1743,
            "oracle-call surrogates solve once or twice per gradient",
            "topk",
            CountsInRange("solves per gradient", ORACLE_CALLS, 1, 2),
        ),
    ]


def generative() -> list[Claim]:
    """Claims of the abstract on generative models, and of Appendix H on their regulariser."""
    lines = []
    for name in ALL:
        rounds = None if name == "energy" else ROUNDS
        for model in ("flow", "diffusion"):
            pairs = tuple((one(HYBRID, "models", model, rounds), one(label)) for label in BANDITS)
            when = "" if rounds is None else f" (round {ROUNDS:,})"
            text = f"{TITLES[name]}: DFHPG with the {model} is below the contextual bandits{when}"
            lines.append(Claim(79, text, name, LowerRegret(pairs)))
    why = "no study plays generative.lambda_reg=0"
    text = "without the regulariser the scenarios drift away from the distribution of the cost"
    return [*lines, Claim(1615, text, "topk", NoStudy(why))]


def all_claims() -> list[Claim]:
    """Return all claims in the order of the paper's sections."""
    sections = (
        main_table(),
        convergence(),
        models(),
        surrogates(),
        mixing(),
        difficulty(),
        feedback(),
        control_variates(),
        cost_per_round(),
        generative(),
    )
    return [line for section in sections for line in section]
