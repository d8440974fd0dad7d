"""A study in Python: two greedy policies alone and in a mixture."""

from regretless.experiments import Arm, Cell, Experiment, Panel, Study

both = {"first": "greedy", "second": "replay"}
mixtures = [
    Arm(f"{share:.0%} replay", "mixture", {**both, "share": share})
    for share in (0.2, 0.8)
]
cells = tuple(
    Cell(
        feedback,
        Experiment(
            "weather", ["greedy", "replay", *mixtures], feedback=feedback
        ),
    )
    for feedback in ("bandit", "full")
)
study = Study(
    "company",
    (Panel("Weather", cells),),
    title="Is company good?",
    about="Two policies, alone and mixed.",
    kind="curves",
)
