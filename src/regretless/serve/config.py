"""The configuration of a service: a TOML file with learners, tokens and limits, checked before anything starts."""

import datetime
import difflib
import glob
import hashlib
import hmac
import os
import re
import secrets
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from regretless import oracles, plugins
from regretless.columns import Columns
from regretless.errors import SettingsError
from regretless.live.learner import Learner, OnFailure
from regretless.live.options import Mode, Pending, Rollout, Store
from regretless.oracles.base import Oracle
from regretless.policies.base import REGISTRY as POLICIES
from regretless.policies.base import PolicySpec
from regretless.policies.guard import Budget
from regretless.problem import Problem

NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
"""Names of learners: what is the same in an address, a file name and a label of a metric."""

ROLES = ("read", "decide", "admin")
"""What a token allows, each with what those before it allow: look, decide and report feedback, change the service."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")

Role = Literal["read", "decide", "admin"]
LearnerName = Annotated[str, StringConstraints(pattern=NAME)]


class _Table(BaseModel):
    """A table of the file; unknown settings are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ServiceTable(_Table):
    """Where the service listens, and its limits."""

    title: str = "regretless"
    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    hosts: tuple[str, ...] = ()
    max_body: int = Field(1_000_000, ge=1000)
    max_batch: int = Field(1000, ge=1)
    max_waiting: int = Field(100, ge=1)
    creations_per_minute: int = Field(10, ge=1)


class TokenTable(_Table):
    """A token by its hash."""

    name: str
    role: Role
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    expires: datetime.date | datetime.datetime | None = None

    def expired(self, now: datetime.datetime) -> bool:
        """Return whether it is past its date; a date without a time ends with that day in UTC."""
        end = self.expires
        if end is None:
            return False
        if not isinstance(end, datetime.datetime):
            end = datetime.datetime.combine(end, datetime.time.max)
        return now >= (end if end.tzinfo else end.replace(tzinfo=datetime.UTC))


class ProblemTable(_Table):
    """A problem that is declared in the file: a built-in oracle with its arguments, contexts and feedback."""

    oracle: str
    arguments: dict[str, Any] = {}
    context: int | tuple[int, ...] | dict[str, Any]
    feedback: str = "bandit"
    sense: Literal["min", "max"] = "min"
    offset: tuple[float, ...] | None = None

    def build(self, folder: Path) -> Problem:
        """Return the problem."""
        if ":" in self.oracle:
            oracle = _load(self.oracle, "oracle", folder)
        else:
            kind = oracles.REGISTRY[self.oracle]
            try:
                oracle = kind(**self.arguments)
            except TypeError as error:
                raise SettingsError(f"the arguments of oracle {self.oracle!r} do not fit: {error}") from None
        context: Any = Columns(**self.context) if isinstance(self.context, dict) else self.context
        return Problem(oracle, context, self.feedback, sense=self.sense, offset=self.offset)


class BudgetTable(_Table):
    """A budget as a share, or in money; see ``rg.Budget``."""

    share: float | None = None
    amount: float | None = None
    per: float | None = None


class RolloutTable(_Table):
    """The incumbent, as numbers or as module:function, and the guard."""

    incumbent: tuple[float, ...] | str
    budget: float | BudgetTable = 0.05
    mode: Mode = "act"


class PendingTable(_Table):
    """How many decisions wait for feedback, and how long."""

    limit: int = 1000
    max_age: int | None = None
    max_age_seconds: float | None = None


class WordsTable(_Table):
    """What the page calls things."""

    unit: str = ""
    round: str = "round"
    rounds: str = ""
    incumbent: str = "the incumbent"
    items: tuple[str, ...] = ()

    @property
    def plural(self) -> str:
        """Several rounds."""
        return self.rounds or f"{self.round}s"


class LearnerTable(_Table):
    """One learner: problem, policy, rollout and store; with ``{name}`` in its store, a template for many."""

    problem: str | ProblemTable
    store: str
    title: str = ""
    policy: str | dict[str, Any] = "adaptive"
    rollout: RolloutTable | None = None
    pending: PendingTable = PendingTable()
    words: WordsTable = WordsTable()
    sync: bool = False
    seed: int = 0
    time_limit: float = Field(10.0, gt=0.0, le=3600.0)
    on_failure: OnFailure | None = None  # the incumbent's decision, or the last feasible one if there is no incumbent
    warm_up: bool = True

    def build_problem(self, folder: Path) -> Problem:
        """Return the problem; a function is called for each learner, so that each has a solver of its own."""
        if isinstance(self.problem, ProblemTable):
            return self.problem.build(folder)
        loaded = _load(self.problem, "problem", folder)
        if not isinstance(loaded, Problem):
            raise SettingsError(
                f"{self.problem}: expected an rg.Problem or a function that returns one, got {type(loaded).__name__}"
            )
        return loaded

    def build_policy(self) -> PolicySpec:
        """Return the policy's specification."""
        settings = {"name": self.policy} if isinstance(self.policy, str) else dict(self.policy)
        spec: PolicySpec = POLICIES.parse(settings.pop("name", "adaptive"), settings)
        return spec

    def build_rollout(self, folder: Path) -> Rollout | None:
        """Return the incumbent with its guard, None if there is none."""
        if self.rollout is None:
            return None
        incumbent: Any = self.rollout.incumbent
        if isinstance(incumbent, str):
            incumbent = plugins.load_object(incumbent, "incumbent", folder)
        budget = self.rollout.budget
        parsed = Budget(**budget.model_dump()) if isinstance(budget, BudgetTable) else budget
        return Rollout(incumbent, parsed, self.rollout.mode)

    def store_path(self, folder: Path, name: str) -> Path:
        """Return the file of a learner; names have neither dots nor slashes, so that it stays where the file says."""
        text = self.store.replace("{name}", name)
        if "://" in text:
            raise SettingsError(f"store {self.store!r}: expected the path of a file; databases are not supported yet")
        return folder / text

    def stored_names(self, folder: Path) -> list[str]:
        """Return the names of the learners that were made from this template."""
        before, _, after = os.path.join(folder, self.store).partition("{name}")
        paths = glob.glob(f"{glob.escape(before)}*{glob.escape(after)}")
        names = [path[len(before) : len(path) - len(after)] for path in sorted(paths)]
        return [name for name in names if re.fullmatch(NAME, name)]

    def open(self, folder: Path, name: str, problem: Problem, clock: Callable[[], float] = time.time) -> Learner:
        """Continue the learner of the store, or begin a new one."""
        path = self.store_path(folder, name)
        store, policy, rollout = Store(path, sync=self.sync), self.build_policy(), self.build_rollout(folder)
        if path.exists():
            return Learner.open(store, problem, policy=policy, rollout=rollout, clock=clock)
        path.parent.mkdir(parents=True, exist_ok=True)
        return Learner(
            problem,
            policy=policy,
            store=store,
            rollout=rollout,
            pending=Pending(**self.pending.model_dump()),
            on_failure=self.on_failure or ("last" if rollout is None else "incumbent"),
            seed=self.seed,
            clock=clock,
        )


class ServiceConfig(_Table):
    """A whole file, and the folder that its paths are relative to."""

    service: ServiceTable = ServiceTable()
    learners: dict[LearnerName, LearnerTable] = {}
    templates: dict[LearnerName, LearnerTable] = {}
    tokens: tuple[TokenTable, ...] = ()
    folder: Path = Path()

    def require_safe(self, host: str) -> None:
        """Refuse to listen where others can reach the service without tokens, or read them on the way."""
        if host in LOOPBACK:
            return
        if not self.tokens:
            raise SettingsError(
                f"host {host}: expected [[tokens]] in the configuration, because others can reach this address; "
                "'regretless token' makes one. Without tokens the service listens on 127.0.0.1 only"
            )
        encrypted = self.service.certificate is not None and self.service.key is not None
        if not encrypted and not self.service.behind_proxy:
            raise SettingsError(
                f"host {host}: expected certificate and key (TLS files), or behind_proxy = true if a reverse proxy "
                "encrypts, because tokens would be readable on the way"
            )

    def role_of(self, token: str) -> int:
        """Return the rank of a token's role, -1 for a wrong or expired one; compares with every token in full."""
        digest, now, rank = hash_token(token), datetime.datetime.now(datetime.UTC), -1
        for known in self.tokens:
            if hmac.compare_digest(digest, known.sha256) and not known.expired(now):
                rank = max(rank, ROLES.index(known.role))
        return rank


class NewToken(NamedTuple):
    """A token, shown once, and what the configuration keeps of it."""

    token: str
    text: str


def make_token(name: str, role: Role, days: int | None) -> NewToken:
    """Return a new random token and its table for the configuration.

    Parameters
    ----------
    name : str
        Who uses it.
    role : {"read", "decide", "admin"}
        What it allows.
    days : int or None
        Days until it expires; None: never.
    """
    if not re.fullmatch(r"[\w .@-]{1,100}", name):
        raise SettingsError(f"token: expected a name of letters, digits, spaces and . @ - _, got {name!r}")
    token = f"rgl_{secrets.token_urlsafe(32)}"
    text = f'[[tokens]]\nname = "{name}"\nrole = "{role}"\nsha256 = "{hash_token(token)}"\n'
    if days is not None:
        text += f"expires = {datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=days)}\n"
    return NewToken(token, text)


def hash_token(token: str) -> str:
    """Return what is kept of a token; it is random, so that a fast hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def read_config(path: str | os.PathLike[str]) -> ServiceConfig:
    """Read and check a configuration file.

    Parameters
    ----------
    path : path
        A TOML file, see ``docs/serving.md``.

    Raises
    ------
    SettingsError
        If it cannot be read or a setting is wrong; says which one.
    """
    file = Path(path)
    try:
        data = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{file}: expected TOML, but {error}") from None
    return parse_config(data, file.resolve().parent, str(file))


def parse_config(data: Mapping[str, Any], folder: Path, name: str = "configuration") -> ServiceConfig:
    """Return a configuration from its data; paths are relative to a folder."""
    try:
        config = ServiceConfig.model_validate({**data, "folder": folder})
    except ValidationError as error:
        raise SettingsError(f"{name}: " + "; ".join(explain_problem(problem) for problem in error.errors())) from None
    for kind, tables in (("learner", config.learners), ("template", config.templates)):
        for own, table in tables.items():
            if ("{name}" in table.store) != (kind == "template"):
                hint = "with {name} in it" if kind == "template" else "without {name}, which is for templates"
                raise SettingsError(f"{name}: {kind} {own!r}: expected a store {hint}, got {table.store!r}")
    paths = [table.store_path(folder, own).resolve() for own, table in config.learners.items()]
    if shared := [path for path in paths if paths.count(path) > 1]:
        raise SettingsError(f"{name}: expected a store for each learner, got {shared[0]} twice")
    if not config.learners and not config.templates:
        raise SettingsError(f"{name}: expected at least one learner, such as [learners.plant]")
    return config


def check_config(config: ServiceConfig) -> None:
    """Load what a configuration names, and open no store.

    Parameters
    ----------
    config : ServiceConfig
        What ``read_config`` returns.

    Raises
    ------
    SettingsError
        If a problem, a policy, an incumbent or the address cannot be used.
    """
    config.require_safe(config.service.host)
    for name, table in {**config.learners, **config.templates}.items():
        try:
            problem = table.build_problem(config.folder)
            Learner(
                problem,
                policy=table.build_policy(),
                rollout=table.build_rollout(config.folder),
                pending=Pending(**table.pending.model_dump()),
            )
        except SettingsError as error:
            raise SettingsError(f"learner {name!r}: {error}") from None


def explain_problem(problem: Mapping[str, Any], known: Sequence[str] | None = None) -> str:
    """Return a sentence for an error of pydantic; ``known`` are names that a wrong one may stand for."""
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        parent, name = problem["loc"][:-1], str(problem["loc"][-1])
        known = _fields_at(parent) if known is None else known
        close = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}" if known else ""
        return f"unknown setting {place!r}{hint}"
    if problem["type"] == "string_pattern_mismatch" and "[key]" in problem["loc"]:
        return f"{place}: expected a name of a-z, 0-9, _ and -, at most 63 characters"
    given = problem.get("input")
    shown = f", got {given!r:.60}" if isinstance(given, str | int | float | bool) else ""
    return f"{place}: {problem['msg'][0].lower()}{problem['msg'][1:]}{shown}"


def _fields_at(place: Sequence[Any]) -> list[str]:
    """Return the names of the settings of a table."""
    kinds: dict[str, type[BaseModel]] = {
        "service": ServiceTable,
        "tokens": TokenTable,
        "problem": ProblemTable,
        "ProblemTable": ProblemTable,
    }
    kinds |= {"rollout": RolloutTable, "budget": BudgetTable, "pending": PendingTable, "words": WordsTable}
    kind: type[BaseModel] = ServiceConfig
    for part in place:
        kind = kinds.get(str(part), LearnerTable if kind is ServiceConfig else kind)
    return [field for field in kind.model_fields if field != "folder"]


def _load(place: str, kind: str, folder: Path) -> Any:
    """Return the object at ``module:object``, or what a function there returns."""
    loaded = plugins.load_object(place, kind, folder)
    made = isinstance(loaded, Problem | Oracle)
    return loaded if made or not callable(loaded) else plugins.call(loaded, f"{kind} {place}, called without arguments")
