"""Commands about live learners: ``evaluate`` candidates on a log, ``rehearse``, ``serve``, make a ``token``."""

from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

import regretless as rg
from regretless import plugins
from regretless.cli import console
from regretless.cli.console import Format, Imports, Names, clear_errors, option
from regretless.errors import SettingsError
from regretless.registry import load_attribute
from regretless.startup import Device, configure


def evaluate(
    source: Annotated[
        Path, typer.Argument(help="A learner's store, or a table of rounds (.csv, .parquet).", show_default=False)
    ],
    oracle: Annotated[str, option("Your feasible set, as module:object.", False)],
    policy: Annotated[
        Names, option("A policy that learns from earlier rounds; adaptive if there is no candidate.")
    ] = None,
    learner: Annotated[list[Path] | None, option("A learner's store, evaluated as it is.")] = None,
    function: Annotated[Names, option("A function from context to decision, as module:function.")] = None,
    feedback: Annotated[
        str | None, option("What a policy observes: bandit by default, semi_bandit with single costs.")
    ] = None,
    model: Annotated[str, option("The policy whose prediction is the regression.")] = "linear_thompson",
    rewards: Annotated[bool, option("The numbers of a table are rewards, not costs.", flag="--rewards")] = False,
    import_: Imports = None,
    device: Annotated[Device, option("Where to compute.")] = "auto",
    format: Annotated[Format, option("How to print the result.")] = "table",
) -> None:
    r"""Estimate what candidates would have cost per round, compared with the log, with 95 % intervals.

    Candidates are policies, stored learners and functions; each of these options can be repeated.

    Where the log has the probability of each decision, estimates are doubly robust; where it does not, they come from
    rounds in which the log decided like the candidate. Where these are too few, or follow a rule, the log is
    inconclusive: the reason and, without an interval, a model's prediction are shown.

    Examples:
      # would the default policy do better?
      regretless evaluate plant.db --oracle plant:assignment
      # two policies
      regretless evaluate plant.db --oracle plant:assignment \
        --policy adaptive --policy greedy
      # a function of the context
      regretless evaluate old.csv --oracle plant:assignment \
        --function plant:night_rule
      # a stored learner, as it is
      regretless evaluate later.db --oracle plant:assignment --learner plant.db

    Columns of a table are named as by History.to_pandas: context_0, …, decision_0, …,
    total or cost_0, …, and where they are known propensity, time, instance_0, ….
    """
    with clear_errors():
        configure(device)
        from regretless.cli.inputs import load_oracle
        from regretless.live.evaluation import evaluate as evaluate_candidates

        console.load_imports(import_)
        feasible = load_oracle(oracle)
        history = read_history(source, rewards)
        names = policy or ([] if learner or function else ["adaptive"])
        labels = [*map(str, learner or ()), *(function or ()), *names]
        if shared := [label for label in labels if labels.count(label) > 1]:
            raise SettingsError(
                f"expected different candidates, got two called {shared[0]!r} (a learner's store can have a whole path)"
            )
        candidates: dict[str, Any] = {
            str(path): rg.Learner.open(path, feasible, read_only=True) for path in learner or ()
        }
        candidates |= {place: plugins.load_object(place, "--function") for place in function or ()}
        candidates |= {name: name for name in names}
        evaluation = evaluate_candidates(candidates, history, oracle=feasible, feedback=feedback, model=model)
        if format == "json":
            console.say_json(evaluation.to_dict())
        else:
            console.say(str(evaluation))


def rehearse(
    source: Annotated[
        Path, typer.Argument(help="A learner's store, or a table of rounds (.csv, .parquet).", show_default=False)
    ],
    oracle: Annotated[str, option("Your feasible set, as module:object.", False)],
    incumbent: Annotated[
        str | None, option("Who decides today: module:function of the context, or module:object with numbers.")
    ] = None,
    policy: Annotated[str, option("What learns.")] = "adaptive",
    budget: Annotated[float, option("What the guard may spend, as a share of the incumbent's cost.")] = 0.05,
    rounds: Annotated[int | None, option("Rounds of a run.", "as many as the history has, at most 250")] = None,
    runs: Annotated[int, option("Number of runs.")] = 5,
    seed: Annotated[int, option("All random draws follow from it.")] = 0,
    rewards: Annotated[bool, option("The numbers of a table are rewards, not costs.", flag="--rewards")] = False,
    out: Annotated[Path | None, option("A picture of the curves (.png, .pdf, .svg).")] = None,
    import_: Imports = None,
    device: Annotated[Device, option("Where to compute.")] = "auto",
    format: Annotated[Format, option("How to print the result.")] = "table",
) -> None:
    r"""Simulate the first rounds of a learner on a model of your history, with and without guard.

    A regression of the costs is fitted to the history, and the learner that would go live plays on it: the same
    policy, solver and guard. It shows how large first losses may be and what the guard costs, before anything goes
    live. It is a simulation; 'regretless evaluate' answers from the log itself.

    Examples:
      # the first weeks next to today's rule
      regretless rehearse old.csv --oracle plant:assignment \
        --incumbent plant:night_rule --budget 0.1
      # a picture, and half a year
      regretless rehearse old.csv --oracle plant:assignment \
        --incumbent plant:night_rule --rounds 180 --out curves.png
    """
    with clear_errors():
        configure(device)
        from regretless.cli.inputs import load_oracle
        from regretless.live.rehearsal import rehearse as run_rehearsal

        console.load_imports(import_)
        feasible = load_oracle(oracle)
        rule = None if incumbent is None else plugins.load_object(incumbent, "--incumbent")
        history = read_history(source, rewards)
        if out is not None:
            console.require_writable(out.parent)
        with console.LiveProgress(source.name) as progress:
            options: dict[str, Any] = {"policy": policy, "budget": budget, "rounds": rounds, "runs": runs, "seed": seed}
            rehearsal = run_rehearsal(history, feasible, incumbent=rule, progress=progress, **options)
        if out is not None:
            from regretless.plots import save_figure  # loads NumPy: not before it is needed

            save_figure(cast("Any", rehearsal.plot().get_figure(root=True)), out)
        if format == "json":
            console.say_json(rehearsal.to_dict())
        else:
            console.say(str(rehearsal))


def read_history(path: Path, rewards: bool) -> Any:
    """Return the history in a learner's store, or in a table with the columns that ``History.to_pandas`` writes."""
    readers = {".csv": rg.History.from_csv, ".parquet": rg.History.from_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is not None:
        return reader(path, sense="max" if rewards else "min")
    if rewards:
        raise SettingsError(f"--rewards is for tables; the store {path} records it itself")
    if not path.is_file():
        raise SettingsError(f"cannot read {path}: expected a learner's store or a table (.csv, .parquet)")
    return rg.History.from_store(path)


def serve(
    config: Annotated[Path, typer.Argument(help="The configuration (TOML).", show_default=False)],
    host: Annotated[str | None, option("The address to listen on.", "the configuration's, or 127.0.0.1")] = None,
    port: Annotated[int | None, option("The port; 0 takes a free one.", "the configuration's, or 8000")] = None,
    check: Annotated[bool, option("Check the configuration and open no store.", flag="--check")] = False,
    device: Annotated[Device, option("Where to compute.")] = "auto",
) -> None:
    """Serve learners over HTTP, with a page to watch them.

    Every decision and its key are stored before they are returned; a restart continues all learners. Addresses other
    than this machine's need tokens ('regretless token') and TLS, or a reverse proxy. Needs the extra 'serve'.

    Examples:
      regretless serve plant.toml              then open http://127.0.0.1:8000
      regretless serve plant.toml --check      is the configuration right?
      regretless serve plant.toml --port 9000

    plant.toml:
      [learners.north]
      problem = "plant:problem"                # plant.py next to this file
      store = "north.db"
      [learners.north.rollout]
      incumbent = "plant:foreman"
    """
    with clear_errors(stopped="stores are complete"):
        configure(device)
        read = load_attribute("regretless.serve:read_config")
        settings = read(config)
        if check:
            load_attribute("regretless.serve:check_config")(settings)
            console.say(f"{config}: {len(settings.learners)} learners, {len(settings.templates)} templates, no errors")
            return
        load_attribute("regretless.serve:serve")(settings, host=host, port=port)


def watch(
    store: Annotated[Path, typer.Argument(help="A learner's store.", show_default=False)],
    problem: Annotated[
        str | None, option("The learner's problem, as module:object; with it also reasons and alarms.", "none")
    ] = None,
    port: Annotated[int, option("The port; 0 takes a free one.")] = 8000,
    browse: Annotated[bool, option("Open the page in a browser.", flag="--open")] = False,
) -> None:
    """Show the page of a learner, read-only, while its own process runs it.

    The page reads the store, which the learner's process goes on writing. Needs the extra 'serve'.

    Examples:
      regretless watch plant.db                           then open http://127.0.0.1:8000
      regretless watch plant.db --problem plant:problem   also reasons and alarms
    """
    with clear_errors(stopped="the store was only read"):
        loaded = None if problem is None else plugins.load_object(problem, "--problem")
        loaded = loaded() if callable(loaded) and not isinstance(loaded, rg.Problem) else loaded
        load_attribute("regretless.serve:watch")(store, loaded, port=port, open_page=browse)


def demo(
    port: Annotated[int, option("The port; 0 takes a free one.")] = 8000,
    days: Annotated[int, option("Days after which it ends.", min=1)] = 6000,
    rate: Annotated[float, option("Days a second.", min=0.1)] = 100.0,
    browse: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Open the page on a simulated workshop; its buttons make things go wrong.

    Four crews get one of four jobs each morning, a hundred mornings a second. Let prices jump, lose the feedback or
    break the solver, and watch the guard and the alarms react. Needs the extra 'serve'.

    Examples:
      regretless demo
      regretless demo --rate 20 --port 9000
    """
    with clear_errors(stopped="nothing was kept"):
        load_attribute("regretless.serve:demo")(port, days=days, rate=rate, open_page=browse)


def token(
    name: Annotated[str, typer.Argument(help="Who uses it.", show_default=False)],
    role: Annotated[Literal["read", "decide", "admin"], option("What it allows.")] = "decide",
    days: Annotated[int | None, option("Days until it expires.", "never", min=1)] = None,
) -> None:
    """Make an access token for a service, and the lines for its configuration.

    The token is shown once; the configuration keeps a hash of it.

    Examples:
      regretless token dispatcher                    decide and report feedback
      regretless token grafana --role read           health, metrics, the page
      regretless token engineer --role admin --days 90
    """
    with clear_errors():
        made = load_attribute("regretless.serve:make_token")(name, role, days)
        console.note("the token, shown only now; clients send it as 'Authorization: Bearer TOKEN'")
        console.say(made.token)
        console.note("append to the configuration and restart the service:")
        console.say(made.text.rstrip())
