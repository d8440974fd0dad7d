"""The claims of the paper's experimental section and appendices about its figures and tables, one line of data each."""

import itertools

from regretless.studies.claims import methods
from regretless.studies.claims.forms import (
    Arm,
    Crossing,
    Group,
    Indistinct,
    Leaders,
    Line,
    Lower,
    NotHigher,
    Ratio,
    Steadier,
    Wider,
)
from regretless.studies.claims.names import (
    ALL,
    BANDITS,
    DEGREES,
    EARLY,
    HYBRID,
    MODELS,
    NAMES,
    PLUG_IN,
    SAID,
    SCORE,
    SURROGATES,
    SYNTHETIC,
    below,
    one,
)


def with_surrogates(names: tuple[str, ...], policy: str, benchmark: str = "") -> Group:
    """A policy with each of these surrogates."""
    return tuple(Arm(f"{name}/{policy}", "surrogates", benchmark=benchmark) for name in names)


def leading(names: tuple[str, ...], policy: str) -> Lower:
    """These surrogates against the average of the rest."""
    rest = tuple(name for name in SURROGATES if name not in names)
    return Lower(((with_surrogates(names, policy), with_surrogates(rest, policy)),))


def trailing(names: tuple[str, ...], policy: str) -> Lower:
    """The rest against the average of these surrogates."""
    rest = tuple(name for name in SURROGATES if name not in names)
    return Lower(((with_surrogates(rest, policy), with_surrogates(names, policy)),))


def main_table() -> list[Line]:
    """Section 3.3 on the main table, and the conclusion."""
    lines = []
    for name in SYNTHETIC:
        others = (*BANDITS, SCORE, PLUG_IN)
        lines.append(
            Line(335, f"bandit feedback: DFHPG has the lowest regret on {NAMES[name]}", name, below(HYBRID, others))
        )
        lines.append(
            Line(335, f"bandit feedback: DFHPG-0 is second on {NAMES[name]}", name, below(PLUG_IN, (*BANDITS, SCORE)))
        )
    for policy in (HYBRID, PLUG_IN):
        words = f"energy: the contextual bandits have 1.7 to 1.9 times the regret of {SAID[policy]}"
        bandits = tuple(Arm(label) for label in BANDITS)
        lines.append(Line(335, words, "energy", Ratio(bandits, one(policy), 1.6, 2.0)))
    words = "energy: DFHPG-0 and DFHPG are about equal, DFHPG-0 slightly lower"
    lines.append(Line(335, words, "energy", NotHigher(((one(PLUG_IN), one(HYBRID)),))))
    pairs = tuple((one(other), one(SCORE)) for other in (HYBRID, PLUG_IN))
    lines.append(Line(335, "energy: DFHPG-1 has higher regret than DFHPG and DFHPG-0", "energy", Lower(pairs)))
    for name in ALL:
        low, high = (0.25, 0.5) if name in SYNTHETIC else (0.55, 0.75)
        share = "25 to 50" if name in SYNTHETIC else "about 65"
        words = f"semi-bandit feedback leaves {share} % of DFHPG's regret on {NAMES[name]}"
        lines.append(Line(335, words, name, Ratio(one(HYBRID, "semi_bandit"), one(HYBRID), low, high)))
        words = f"semi-bandit feedback: DFHPG-0 has the lowest regret on {NAMES[name]}"
        lines.append(Line(335, words, name, below(PLUG_IN, (*BANDITS, HYBRID), "semi_bandit")))
    for name in ALL:
        for policy in (HYBRID, PLUG_IN):
            words = f"{SAID[policy]} ends below the contextual bandits and the score alone on {NAMES[name]}"
            lines.append(Line(419, words, name, below(policy, (*BANDITS, SCORE))))
    return lines


def convergence() -> list[Line]:
    """Section 3.3 and Appendix K.1 on the first 600 rounds."""
    early = (one(SCORE, "convergence", rounds=150), one(PLUG_IN, "convergence", rounds=150))
    late = (one(PLUG_IN, "convergence", rounds=600), one(SCORE, "convergence", rounds=600))
    crossing = Crossing(Arm(SCORE, "convergence"), Arm(PLUG_IN, "convergence"), 200, 400)
    others = tuple(name for name in (*BANDITS, SCORE))
    apart = (
        below(HYBRID, others, "convergence", rounds=600).pairs + below(PLUG_IN, others, "convergence", rounds=600).pairs
    )
    tracks = Ratio(
        one(SCORE, "convergence", rounds=600), tuple(Arm(b, "convergence", "", 600) for b in BANDITS), 0.75, 1.25
    )
    every = (*BANDITS, SCORE, PLUG_IN)
    return [
        Line(413, "top-k: DFHPG-1 is below DFHPG-0 in the beginning (round 150)", "topk", Lower((early,))),
        Line(413, "top-k: the order of DFHPG-1 and DFHPG-0 reverses at about round 300", "topk", crossing),
        Line(413, "top-k: DFHPG-0 is below DFHPG-1 at round 600", "topk", Lower((late,))),
        Line(413, "top-k: DFHPG ends below the contextual bandits", "topk", below(HYBRID, BANDITS, "convergence", rounds=600)),
        Line(1683, "shortest path: DFHPG is the lowest curve at round 600", "shortest_path",
             below(HYBRID, every, "convergence", rounds=600)),
        Line(1683, "pricing: DFHPG and DFHPG-0 are apart from the rest at round 600", "pricing", Lower(apart)),
        Line(1683, "pricing: DFHPG-1 behaves like the contextual bandits (within a quarter at round 600)", "pricing", tracks),
    ]  # fmt: skip


def models() -> list[Line]:
    """Section 3.3 and Appendix K.2 on the models of the cost."""

    def model(name: str, rounds: int | None = None) -> Group:
        return one(HYBRID, "models", name, rounds)

    lines = []
    for name in SYNTHETIC:
        at = 415 if name == "pricing" else 1713
        early = tuple((model(MODELS[0], EARLY), model(other, EARLY)) for other in MODELS[1:])
        lines.append(Line(at, f"{NAMES[name]}: the linear model leads early (round {EARLY:,})", name, Lower(early)))
        final = tuple((model("flow"), model(other)) for other in (MODELS[0], "diffusion"))
        lines.append(Line(at, f"{NAMES[name]}: the flow reaches the lowest final regret", name, Lower(final)))
        trails: tuple[tuple[Group, Group], ...] = ((model("flow"), model("diffusion")),)
        if name != "pricing":
            trails += ((model(MODELS[0]), model("diffusion")),)
        words = "the flow does better than diffusion" if name == "pricing" else "diffusion trails"
        lines.append(Line(at, f"{NAMES[name]}: {words}", name, Lower(trails)))
    pairs = tuple((model(a), model(b)) for a, b in (MODELS[:2], MODELS[::2], MODELS[1:]))
    lines.append(Line(1713, "energy: the models differ by no more than runs do", "energy", Indistinct(pairs)))
    return lines


def surrogates() -> list[Line]:
    """Appendix K.4 on the heat maps."""
    lines = []
    leaders = ("contrastive_map", "dbb", "pairwise_diff", "listwise_ltr")
    for policy in (HYBRID, PLUG_IN):
        words = f"pricing, {SAID[policy]}: contrastive_map, dbb, pairwise_diff and listwise_ltr lead"
        lines.append(Line(1823, words, "pricing", leading(leaders, policy)))
        words = f"pricing, {SAID[policy]}: nid and mse_spo_plus trail"
        lines.append(Line(1823, words, "pricing", trailing(("nid", "mse_spo_plus"), policy)))
    flat = ("aimle", "pairwise_diff", "nid", "dpo", "pfyl", "pg")
    both = {policy: tuple(with_surrogates((name,), policy) for name in SURROGATES) for policy in (HYBRID, PLUG_IN)}
    lines += [
        Line(1823, "shortest path, DFHPG: aimle, pairwise_diff, nid, dpo, pfyl and pg lead", "shortest_path",
             leading(flat, HYBRID)),
        Line(1823, "shortest path, DFHPG-0: spo_plus, spo_caching and aimle lead", "shortest_path",
             leading(("spo_plus", "spo_caching", "aimle"), PLUG_IN)),
        Line(1823, "top-k, DFHPG: nid, pairwise_diff and mse_spo_plus lead", "topk",
             leading(("nid", "pairwise_diff", "mse_spo_plus"), HYBRID)),
        Line(1823, "top-k, DFHPG-0: nid and the SPO losses lead", "topk",
             leading(("nid", "spo_plus", "mse_spo_plus", "spo_caching"), PLUG_IN)),
    ]  # fmt: skip
    for policy in (HYBRID, PLUG_IN):
        words = f"energy, {SAID[policy]}: pairwise_diff, mse_spo_plus, imle and nce lead"
        lines.append(Line(1823, words, "energy", leading(("pairwise_diff", "mse_spo_plus", "imle", "nce"), policy)))
        words = f"energy, {SAID[policy]}: dbb and contrastive_map are in the worse half"
        lines.append(Line(1823, words, "energy", trailing(("dbb", "contrastive_map"), policy)))
        rest = tuple(name for name in SURROGATES if name not in ("pg", "dpo"))
        collapse = Ratio(with_surrogates(("pg", "dpo"), policy), with_surrogates(rest, policy), 5.0, 50.0)
        lines.append(
            Line(1823, f"energy, {SAID[policy]}: pg and dpo are worse by an order of magnitude", "energy", collapse)
        )
    for policy in (HYBRID, PLUG_IN):
        panels = tuple(tuple(with_surrogates((name,), policy, place) for name in SURROGATES) for place in ALL)
        words = f"{SAID[policy]}: no single surrogate is the best on all four benchmarks"
        lines.append(Line(1823, words, "topk", Leaders(panels)))
    for name in ALL:
        words = f"{NAMES[name]}: DFHPG is no more sensitive to the surrogate than DFHPG-0"
        lines.append(Line(1823, words, name, Steadier(both[HYBRID], both[PLUG_IN])))
    return lines


def mixing() -> list[Line]:
    """Appendix K.5 on the mixing weight."""
    schedule = one("schedule", "alpha")
    fixed = {value: one(f"α = {value}", "alpha") for value in ("0", "0.25", "0.5", "0.75", "1")}
    lines = [
        Line(1828, f"{NAMES[name]}: the schedule matches or improves on every fixed α", name,
             NotHigher(tuple((schedule, group) for group in fixed.values())))
        for name in SYNTHETIC
    ]  # fmt: skip
    small = tuple((fixed[value], schedule) for value in ("0", "0.25"))
    hurts = tuple((fixed["0"], fixed[value]) for value in ("0.25", "0.5", "0.75", "1"))
    lines.append(Line(1828, "energy: the schedule trails the smaller fixed α", "energy", Lower(small)))
    lines.append(Line(1828, "energy: any positive weight on the score hurts", "energy", Lower(hurts)))
    return lines


def difficulty() -> list[Line]:
    """Appendix K.6 on the degree of the costs."""
    lines = []
    for name in SYNTHETIC:
        rises = tuple(
            (one(label, "degree", a), one(label, "degree", b))
            for label in (*BANDITS, SCORE, HYBRID, PLUG_IN)
            for a, b in itertools.pairwise(DEGREES)
        )
        lines.append(Line(1861, f"{NAMES[name]}: every method's regret rises with the degree", name, Lower(rises)))
        for policy in (HYBRID, PLUG_IN):
            pairs = tuple(pair for value in DEGREES for pair in below(policy, BANDITS, "degree", value).pairs)
            words = f"{NAMES[name]}: {SAID[policy]} keeps its advantage over the contextual bandits at every degree"
            lines.append(Line(1861, words, name, Lower(pairs)))
        bandits = tuple(Arm(label, "degree", value) for label in BANDITS for value in DEGREES)
        scores = tuple(Arm(SCORE, "degree", value) for value in DEGREES)
        words = f"{NAMES[name]}: DFHPG-1 largely tracks the contextual bandits (within a quarter over all degrees)"
        lines.append(Line(1861, words, name, Ratio(scores, bandits, 0.75, 1.25)))
    for name, value, low, high, words in (
        ("pricing", "2", 10.0, 1e9, "more than ten times"),
        ("pricing", "10", 1.0, 3.0, "a narrow gap at degree 10: less than three times"),
        ("topk", "2", 1.5, 2.5, "around twice"),
        *(("topk", value, 3.5, 5.5, "four to five times") for value in DEGREES[1:]),
        *(("shortest_path", value, 1.0, 1.5, "little more than") for value in DEGREES),
    ):
        bandits = tuple(Arm(label, "degree", value) for label in BANDITS)
        sentence = f"{NAMES[name]}, degree {value}: the contextual bandits have {words} the regret of DFHPG"
        lines.append(Line(1861, sentence, name, Ratio(bandits, one(HYBRID, "degree", value), low, high)))
    return lines


def feedback() -> list[Line]:
    """Appendix K.7 on the three feedback modes."""
    lines = []
    modes = ("bandit", "semi_bandit", "full")
    for name in ALL:
        for policy in (HYBRID, PLUG_IN):
            pairs = tuple(
                (one(policy, "feedback", richer), one(policy, "feedback", poorer))
                for poorer, richer in itertools.pairwise(modes)
            )
            words = f"{NAMES[name]}: {SAID[policy]}'s regret falls as feedback becomes richer"
            lines.append(Line(1889, words, name, Lower(pairs)))
    for mode in modes[1:]:
        wider = Wider(Arm(HYBRID, "feedback", "bandit"), Arm(HYBRID, "feedback", mode), 5.0)
        lines.append(
            Line(1889, f"energy: error bars are about ten times as wide as with {mode} feedback", "energy", wider)
        )
    twice = Ratio(one("thompson", "semi_bandit"), one(PLUG_IN, "semi_bandit"), 1.5, 2.5)
    lines.append(Line(1891, "pricing, semi-bandit: Thompson has about twice the regret of DFHPG-0", "pricing", twice))
    for name in ("topk", "shortest_path", "energy"):
        words = f"{NAMES[name]}, semi-bandit: Thompson is no closer to DFHPG-0 than that (pricing is the closest)"
        further = Ratio(one("thompson", "semi_bandit"), one(PLUG_IN, "semi_bandit"), 2.0, 1e9)
        lines.append(Line(1891, words, name, further))
    return lines


def lines() -> list[Line]:
    """All of them, in the order of the paper's sections."""
    sections = (
        main_table(),
        convergence(),
        models(),
        surrogates(),
        mixing(),
        difficulty(),
        feedback(),
        methods.lines(),
    )
    return [line for section in sections for line in section]
