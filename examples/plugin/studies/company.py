"""A study in Python: two greedy policies alone and in a mixture."""

from regretless.studies import Arm, Experiment, Panel, Study

both = {"first": "greedy", "second": "replay"}
arms = (
    Arm(label="greedy", policy="greedy"),
    Arm(label="replay", policy="replay"),
    *(
        Arm(
            label=f"{share:.0%} replay",
            policy="mixture",
            settings={**both, "share": share},
        )
        for share in (0.2, 0.8)
    ),
)
cells = tuple(
    (
        feedback,
        Experiment(benchmark="weather", arms=arms, feedback=feedback),
    )
    for feedback in ("bandit", "full")
)
study = Study(
    "company",
    "curves",
    "Is company good?",
    "Two policies, alone and mixed.",
    (Panel("Weather", cells),),
)
