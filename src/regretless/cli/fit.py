"""``regretless fit``: train models with decision-focused losses on a table of contexts and costs."""

from pathlib import Path
from typing import Annotated, Any

import typer

import regretless as rg
from regretless.cli import console
from regretless.cli.console import Format, Imports, Names, Settings, clear_errors, option, parse_pairs
from regretless.errors import SettingsError
from regretless.startup import Device, configure


def fit_(
    data: Annotated[
        Path, typer.Argument(help="Contexts and costs, row by row (.csv, .parquet, .npz).", show_default=False)
    ],
    oracle: Annotated[str, option("Your feasible set, as module:object.", False)],
    surrogate: Annotated[
        Names, option("A loss ('regretless list surrogates'); repeatable.", "mse and spo_plus")
    ] = None,
    model: Annotated[Names, option("What predicts the costs; repeatable.", "gaussian_linear")] = None,
    test: Annotated[Path | None, option("Rows to test on.", "a quarter of the data")] = None,
    folds: Annotated[int | None, option("Folds of a cross-validation instead of a test set.", min=2)] = None,
    validation: Annotated[float, option("Share of the data to choose the best epoch by.", min=0.0, max=0.9)] = 0.0,
    epochs: Annotated[int, option("Passes over the data.", min=0)] = 100,
    batch: Annotated[int, option("Rows of a batch.", min=1)] = 32,
    lr: Annotated[float, option("Learning rate.", min=0.0)] = 0.01,
    patience: Annotated[int | None, option("Epochs without a better validation before it stops.", min=1)] = None,
    seeds: Annotated[int, option("Number of seeds of each fit.", min=1)] = 1,
    set_: Settings = None,
    rewards: Annotated[bool, option("The numbers are rewards, not costs.", flag="--rewards")] = False,
    out: Annotated[Path | None, option("Folder for the fits; the same command continues from it.")] = None,
    import_: Imports = None,
    device: Annotated[Device, option("Where to compute.")] = "auto",
    format: Annotated[Format, option("How to print the result.")] = "table",
) -> None:
    r"""Train models offline and compare the regret of their decisions on rows that they have not seen.

    Columns are context_0, context_1, … and cost_0, cost_1, …; an .npz file has the arrays contexts and costs. Each
    loss is trained with each model; differences are paired by the rows of the test set, with 95 % intervals.

    Examples:
      # squared error against SPO+, on a quarter of the rows
      regretless fit trips.csv --oracle plant:network
      # three losses and two models, cross-validation
      regretless fit trips.csv --oracle plant:network --folds 5 \
        --surrogate mse --surrogate spo_plus --surrogate pfyl \
        --model gaussian_linear --model gaussian_nn
      # a setting of the loss, early stopping, and files to use in Python:
      # rg.offline.Fit.load("fits/dbb_0.npz", network)
      regretless fit trips.csv --oracle plant:network --surrogate dbb --set lam=5 \
        --validation 0.2 --patience 20 --out fits

    'regretless evaluate' is for logs of decisions; rg.offline.estimate_costs learns from them.
    """
    with clear_errors():
        configure(device)
        from regretless.cli.inputs import load_oracle

        console.load_imports(import_)
        feasible = load_oracle(oracle)
        sense: Any = "max" if rewards else "min"
        rows = rg.offline.Dataset.load(data, feasible, sense=sense)
        if test is not None and folds is not None:
            raise SettingsError("expected --test or --folds, got both")
        if patience is not None and not validation:
            raise SettingsError("--patience needs a validation set: add --validation 0.2")
        held_out: Any = folds
        if test is not None:
            held_out = rg.offline.Dataset.load(test, feasible, sense=sense)
        elif folds is None:
            rows, held_out = rows.split(0.75, 0.25)
        valid = None
        if validation:
            rows, valid = rows.split(1.0 - validation, validation)
        names = surrogate or ["mse", "spo_plus"]
        settings = parse_pairs(set_ or ())
        if settings and len(names) > 1:
            raise SettingsError("--set is for one loss: name it with --surrogate")
        with console.LiveProgress("fit") as progress:
            comparison = rg.offline.compare(
                rows,
                held_out,
                surrogates=[rg.surrogates.parse(name, settings) for name in names],
                models=model or ["gaussian_linear"],
                validation=valid,
                training=rg.offline.Training(epochs=epochs, batch=batch, lr=lr, patience=patience),
                seeds=seeds,
                progress=progress,
                save=out,
            )
        if format == "json":
            console.say_json(comparison.to_dict())
            return
        tested = f"{folds} folds" if folds else f"{len(held_out)} rows"
        console.say(f"{rows}, tested on {tested}\n")
        console.say(str(comparison))
        if conclusion := comparison.conclude():
            console.say(f"\n{conclusion}")
