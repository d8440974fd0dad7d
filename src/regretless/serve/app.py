"""The routes of the service: typed, with problem+json errors, tokens and limits."""

import asyncio
import contextlib
import csv
import io
import json
import logging
import math
import re
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException as StarletteHTTPException

from regretless import __version__
from regretless.errors import (
    ConflictError,
    FeedbackError,
    OracleError,
    RegretlessError,
    SettingsError,
    StoreError,
    UnknownDecisionError,
    WriteError,
)
from regretless.live.history import History
from regretless.live.records import Choice, Receipt, plain_data
from regretless.serve.config import LOOPBACK, NAME, ROLES, ServiceConfig, explain_problem
from regretless.serve.hosting import HostedLearner, OverloadedError, Service, UnknownLearnerError
from regretless.serve.metrics import render_metrics

STATUS: dict[type[RegretlessError], int] = {
    ConflictError: 409,
    UnknownDecisionError: 404,
    UnknownLearnerError: 404,
    FeedbackError: 422,
    SettingsError: 422,
    OverloadedError: 429,
    OracleError: 503,
    StoreError: 503,
    WriteError: 503,
}
"""What the errors of the library are over HTTP; the first class that fits counts."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

ASSETS = {
    "page.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The parts of the page, with their types."""

EVENT_SECONDS, KEEP_ALIVE_SECONDS = 0.5, 15.0
"""Seconds between two looks at the learners for an open page, and after which something is sent in any case."""

MAX_LISTENERS = 100
"""Pages that are open at the same time."""

log = logging.getLogger("regretless.serve")

Key = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Number = float | int
Context = (
    Annotated[list[Number], Field(description="a number for each column")]
    | Annotated[list[list[Number]], Field(description="feature rows, one for each coordinate")]
    | Annotated[dict[str, Any], Field(description="by name, if the problem has columns")]
    | Annotated[list[dict[str, Any]], Field(description="feature rows by name")]
)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DecideBody(_Body):
    """Ask for one decision."""

    context: Context
    instance: Any = Field(None, description="what changed in the feasible set")
    explore: bool = True
    key: Key | None = Field(None, description="your identifier; a repeated request with it gets the stored decision")


class BatchBody(_Body):
    """Ask for several decisions: all of them or none."""

    contexts: list[Context] = Field(min_length=1)
    instances: list[Any] | None = None
    explore: bool = True
    keys: list[Key | None] | None = None


class RecordBody(_Body):
    """Keep a decision that a person made."""

    context: Context
    w: list[Number]
    instance: Any = None
    key: Key | None = None


class LinearFeedback(_Body):
    """Rows that measure values."""

    rows: list[list[Number]]
    values: list[Number]


class FeedbackBody(_Body):
    """Report what a decision cost, in one of the forms of ``Learner.learn``."""

    id: int | Key = Field(description="the decision's id or key")
    total: Number | None = None
    components: dict[str, Number] | None = Field(None, description="costs by name or number of the item")
    costs: list[Number | None] | None = None
    linear: LinearFeedback | None = None
    values: list[Number | None] | None = None
    final: bool = True


class SettingsBody(_Body):
    """Numbers to change: settings of the policy by dotted name, ``budget`` and ``mode`` of the rollout."""

    settings: dict[str, Any] = Field(min_length=1)


class CreateBody(_Body):
    """Make a learner from a template of the configuration."""

    template: str


class ChoiceReply(BaseModel):
    """A decision."""

    id: int
    w: list[float]
    by: str
    chosen: dict[str, float] = Field(description="what is not zero, by the items' names")
    explored: bool
    fallback: bool = Field(description="whether the solver failed and an earlier decision stands in")
    proposed: list[float] | None
    key: str | None
    log_density: float | None
    cost_sample: list[float]
    context: Any
    instance: Any
    aux: Any


class ReceiptReply(BaseModel):
    """What became of a piece of feedback."""

    id: int | list[int]
    new: bool
    complete: bool
    residual: float | None
    message: str


class ProblemReply(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


class PlainJSON(JSONResponse):
    """JSON in ASCII, so that any text of a user can be repeated."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def problem(status: int, title: str, detail: str, headers: dict[str, str] | None = None) -> Response:
    """Return an error as problem+json."""
    content = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return PlainJSON(content, status, headers, "application/problem+json")


def require(role: str) -> Callable[[Request], Coroutine[Any, Any, None]]:
    """Return the check that a request may do what a role allows."""
    rank = ROLES.index(role)

    async def check(request: Request) -> None:
        service: Service = request.app.state.service
        got = service.rank(request)
        if got < 0:
            raise HTTPException(401, "expected a valid token: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"})
        if got < rank:
            raise HTTPException(403, f"expected a token with the role {role!r}, got one with {ROLES[got]!r}")

    return check


def hosted(name: str, request: Request) -> HostedLearner:
    """Return the learner of an address."""
    service: Service = request.app.state.service
    return service.find(name)


Hosted = Annotated[HostedLearner, Depends(hosted)]
READ, DECIDE, ADMIN = ([Depends(require(role))] for role in ROLES)
ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": ProblemReply, "description": text, "content": {"application/problem+json": {}}}
    for code, text in {
        400: "not JSON",
        401: "no valid token",
        403: "not allowed",
        404: "unknown learner or decision",
        409: "differs from an earlier request",
        413: "too large",
        422: "cannot be used",
        429: "too many requests",
        503: "solver or store failed",
    }.items()
}
router = APIRouter(prefix="/v1", responses=ERRORS)


def to_reply(host: HostedLearner, choice: Choice) -> dict[str, Any]:
    """Return a choice as data."""
    places = np.flatnonzero(choice.w).tolist()
    return {**choice.as_dict(), "chosen": {host.items[place]: float(choice.w[place]) for place in places}}


def to_arrays(given: Any) -> Any:
    """Return JSON data of an instance with its lists of numbers as arrays."""
    if isinstance(given, dict):
        return {name: to_arrays(part) for name, part in given.items()}
    if not isinstance(given, list):
        return given
    try:
        return np.asarray(given)
    except ValueError:
        raise SettingsError("instance: expected rows of the same length, got rows of different lengths") from None


@router.get("/learners", dependencies=READ, summary="All learners")
def list_learners(request: Request) -> list[dict[str, Any]]:
    """Return each learner with its state."""
    service: Service = request.app.state.service
    rows = []
    for name, host in sorted(service.learners.items()):
        state = host.learner.state
        counts = {"decisions": state.made, "waiting": len(state.waiting), "paused": state.paused, "mode": state.mode}
        rows.append({"name": name, "title": host.table.title or name, **counts})
    return rows


@router.put("/learners/{name}", dependencies=ADMIN, summary="Make a learner from a template", status_code=201)
def create_learner(name: str, body: CreateBody, request: Request, response: Response) -> dict[str, Any]:
    """Make a learner; nothing changes if it is there already."""
    if not re.fullmatch(NAME, name):
        raise SettingsError(f"expected a name of a-z, 0-9, _ and -, at most 63 characters, got {name!r:.80}")
    service: Service = request.app.state.service
    created = service.create(name, body.template)
    response.status_code = 201 if created else 200
    return {"name": name, "created": created}


@router.post("/learners/{name}/decide", dependencies=DECIDE, summary="Decide", response_model=ChoiceReply)
async def decide(host: Hosted, body: DecideBody) -> Response:
    """Return a decision for one context; it is stored before it is returned."""
    learner = host.learner
    options = {"instance": to_arrays(body.instance), "explore": body.explore, "key": body.key}
    choice = await host.run(host.decide, learner.decide, body.context, **options)
    return PlainJSON(to_reply(host, choice))


@router.post("/learners/{name}/decide-batch", dependencies=DECIDE, response_model=list[ChoiceReply])
async def decide_batch(host: Hosted, body: BatchBody, request: Request) -> Response:
    """Return a decision for each context, all or none."""
    limit = request.app.state.service.config.service.max_batch
    if len(body.contexts) > limit:
        raise HTTPException(413, f"expected at most {limit} contexts, got {len(body.contexts)}")
    instances = None if body.instances is None else [to_arrays(instance) for instance in body.instances]
    options = {"instances": instances, "explore": body.explore, "keys": body.keys}
    choices = await host.run(host.decide, host.learner.decide_batch, body.contexts, **options)
    return PlainJSON([to_reply(host, choice) for choice in choices])


@router.post("/learners/{name}/record", dependencies=DECIDE, response_model=ChoiceReply)
async def record(host: Hosted, body: RecordBody) -> Response:
    """Keep a decision that a person made; its feedback is learned like any other."""
    options = {"instance": to_arrays(body.instance), "key": body.key}
    choice = await host.run(host.learner.record, body.context, body.w, **options)
    return PlainJSON(to_reply(host, choice))


@router.post("/learners/{name}/feedback", dependencies=DECIDE, response_model=ReceiptReply)
async def feedback(host: Hosted, body: FeedbackBody) -> Response:
    """Learn from feedback on a decision; what is null was not seen."""
    seen: dict[str, Any] = {"total": body.total, "final": body.final}
    for name in ("costs", "values"):
        given = getattr(body, name)
        if given is not None:
            seen[name] = [math.nan if value is None else value for value in given]
    if body.components is not None:
        seen["components"] = {host.coordinate(label): cost for label, cost in body.components.items()}
    if body.linear is not None:
        seen["linear"] = (body.linear.rows, body.linear.values)
    receipt: Receipt = await host.run(host.learner.learn, body.id, **seen)
    return PlainJSON(plain_data(vars(receipt)))


@router.get("/learners/{name}/decisions/{id}/explanation", dependencies=READ, summary="Explain a decision")
async def explain(host: Hosted, id: str) -> Response:
    """Return why a decision is what it is; ``id`` is its number or its key."""
    explanation = await host.run(host.learner.explain, int(id) if id.isdecimal() and len(id) < 12 else id)
    return PlainJSON(explanation.as_dict())


@router.post("/learners/{name}/pause", dependencies=ADMIN)
def pause(host: Hosted) -> dict[str, bool]:
    """Give every decision to the incumbent at once, also while a solver runs."""
    host.pause()
    return {"paused": True}


@router.post("/learners/{name}/resume", dependencies=ADMIN)
def resume(host: Hosted) -> dict[str, bool]:
    """End a pause."""
    host.learner.resume()
    return {"paused": False}


@router.get("/learners/{name}/settings", dependencies=READ)
def get_settings(host: Hosted) -> dict[str, Any]:
    """Return the settings of the policy and the rollout."""
    return host.settings()


@router.patch("/learners/{name}/settings", dependencies=ADMIN)
async def change_settings(host: Hosted, body: SettingsBody) -> Response:
    """Change settings from the next call on; what was learned stays."""
    return PlainJSON(plain_data(await host.run(host.update, body.settings)))


@router.get("/learners/{name}/health", dependencies=READ)
def health(host: Hosted) -> Response:
    """Return how the learner is doing."""
    return PlainJSON(host.health().to_dict())


@router.get("/learners/{name}/history.csv", dependencies=READ, response_class=StreamingResponse)
def export_history(host: Hosted) -> Response:
    """Return all decisions with what came back, as ``History.from_csv`` reads them."""
    if not host.learner.state.made:
        raise SettingsError("no decision has been made yet: there is nothing to export")
    table = History.from_store(host.store).to_columns()
    name = f"{host.name}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', **HEADERS}
    return StreamingResponse(_write_rows(table), media_type="text/csv", headers=headers)


def _write_rows(table: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a CSV file, with empty cells for what is not known."""
    for rows in ([list(table)], zip(*table.values(), strict=True)):
        for row in rows:
            line = io.StringIO()
            csv.writer(line).writerow(["" if value is None or value != value else value for value in row])
            yield line.getvalue()


@router.get("/learners/{name}/backup", dependencies=ADMIN, response_class=FileResponse)
def backup(host: Hosted) -> Response:
    """Return a compact copy of the learner, which ``Learner.open`` continues from."""
    folder = tempfile.TemporaryDirectory(prefix="regretless-")
    path = Path(folder.name) / "backup.db"
    host.learner.save(path)
    return FileResponse(
        path,
        media_type="application/vnd.sqlite3",
        filename=f"{host.name}.db",
        background=BackgroundTask(folder.cleanup),
    )


pages = APIRouter(responses={code: ERRORS[code] for code in (401, 403, 404)})


@pages.get("/v1/overview", dependencies=READ, summary="The state of every learner")
def overview(request: Request) -> Response:
    """Return state, saving and feedback of every learner, in the words of the page."""
    service: Service = request.app.state.service
    return PlainJSON([service.view(name).summary() for name in service.names()])


@pages.get("/v1/learners/{name}/page", dependencies=READ, summary="Everything that the page shows")
def page(name: str, request: Request) -> Response:
    """Return the figures and sentences of a learner's page."""
    service: Service = request.app.state.service
    return PlainJSON(service.view(name).page())


@pages.get("/v1/events", dependencies=READ, summary="Numbers that change when a page does", include_in_schema=False)
async def events(request: Request) -> Response:
    """Stream the numbers of all learners as server-sent events, when they change."""
    service: Service = request.app.state.service
    if service.listening >= MAX_LISTENERS:
        raise OverloadedError(f"{service.listening} pages are open; try again later")

    def numbers() -> dict[str, int]:
        return {
            **{name: service.view(name).number() for name in service.names()},
            "extra": service.panel.number() if service.panel else 0,
        }

    async def changes() -> AsyncIterator[str]:
        before, quiet = None, 0.0
        service.listening += 1
        try:
            while not service.stopping.is_set():
                now = await asyncio.to_thread(numbers)
                if now != before:
                    yield f"data: {json.dumps(now)}\n\n"
                    before, quiet = now, 0.0
                elif quiet > KEEP_ALIVE_SECONDS:
                    yield ": still here\n\n"
                    quiet = 0.0
                await asyncio.sleep(EVENT_SECONDS)
                quiet += EVENT_SECONDS
        finally:
            service.listening -= 1

    return StreamingResponse(changes(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@pages.get("/v1/panel", dependencies=READ, include_in_schema=False)
def panel(request: Request) -> Response:
    """Return the part of the page with buttons, null without one."""
    service: Service = request.app.state.service
    return PlainJSON(None if service.panel is None else service.panel.describe())


@pages.post("/v1/panel/{id}", dependencies=ADMIN, include_in_schema=False)
def press(id: str, request: Request) -> Response:
    """Press a button of that part."""
    service: Service = request.app.state.service
    if service.panel is not None:
        service.panel.press(id)
    return panel(request)


@pages.get("/", include_in_schema=False)
def root() -> Response:
    """Return the page, which has no data of its own."""
    return _asset("page.html")


@pages.get("/assets/{file}", include_in_schema=False)
def asset(file: str) -> Response:
    """Return a part of the page."""
    if file not in ASSETS:
        raise HTTPException(404, "unknown part of the page")
    return _asset(file)


def _asset(file: str) -> Response:
    return Response((Path(__file__).with_name("assets") / file).read_bytes(), media_type=ASSETS[file])


class Limits:
    """ASGI middleware: limit the size of bodies, refuse other sites' requests, add headers, count requests."""

    def __init__(self, app: Any, service: Service):
        self.app, self.service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        limit, received, begin = self.service.config.service.max_body, 0, time.perf_counter()
        status = 500

        async def limited() -> Any:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise HTTPException(413, f"expected a body of at most {limit} bytes")
            return message

        async def headed(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                known = {name.lower() for name, _ in message["headers"]}
                extra = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in extra if pair[0] not in known)]
            await send(message)

        try:
            refusal = self._refusal(headers, limit)
            await (self.app(scope, limited, headed) if refusal is None else refusal(scope, receive, headed))
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.service.traffic.count(route, status, time.perf_counter() - begin)

    def _refusal(self, headers: dict[str, str], limit: int) -> Response | None:
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 15 or int(length) > limit:
            return problem(413, "Too large", f"expected a body of at most {limit} bytes")
        host = headers.get("host", "")
        names = {*LOOPBACK, self.service.host, *self.service.config.service.hosts}
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if not self.service.config.tokens and name.strip("[]") not in names:
            return problem(
                403, "Forbidden", f"unknown host {host!r:.80}: the service without tokens is for this machine"
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return problem(403, "Forbidden", "requests of other sites are refused")
        return None


def make_app(service: Service, *, manage_learners: bool = True) -> FastAPI:
    """Return the application of a service.

    Parameters
    ----------
    service : Service
        What it serves.
    manage_learners : bool, default True
        Whether there are routes to use the learners, and the end of the application closes them.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if manage_learners:
                await asyncio.to_thread(service.close)

    app = FastAPI(
        title=service.config.service.title,
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    if manage_learners:
        app.include_router(router)
    app.include_router(pages)

    @app.get("/healthz", include_in_schema=False)
    def alive() -> dict[str, Any]:
        return {"status": "ok", "learners": len(service.learners), "version": __version__}

    @app.get("/metrics", dependencies=READ, include_in_schema=False)
    def metrics() -> Response:
        return Response(render_metrics(service), media_type="text/plain; version=0.0.4; charset=utf-8")

    _handle_errors(app)
    app.add_middleware(Limits, service=service)
    return app


def _handle_errors(app: FastAPI) -> None:
    """Answer every error with problem+json."""

    async def of_library(request: Request, error: Exception) -> Response:
        status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 500)
        title = type(error).__name__.removesuffix("Error")
        return problem(status, title, str(error), {"Retry-After": "1"} if status in (429, 503) else None)

    async def of_body(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        found = error.errors()
        if any(part["type"] == "json_invalid" for part in found):
            return problem(400, "Not JSON", "expected a body of JSON")
        missing = [str(part["loc"][-1]) for part in found if part["type"] == "missing"]
        text = "; ".join(explain_problem({**part, "loc": part["loc"][1:]}, missing) for part in found[:5])
        return problem(422, "Settings", text)

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, StarletteHTTPException)
        headers = None if error.headers is None else dict(error.headers)
        return problem(error.status_code, "Refused", str(error.detail), headers)

    async def of_others(request: Request, error: Exception) -> Response:
        log.exception("unexpected error", exc_info=error)
        return problem(500, "Unexpected", f"{type(error).__name__}; the service's log has the details")

    app.add_exception_handler(RegretlessError, of_library)
    app.add_exception_handler(RequestValidationError, of_body)
    app.add_exception_handler(StarletteHTTPException, of_http)
    app.add_exception_handler(Exception, of_others)


BACKLOG = 512
"""Connections that wait while the service starts."""

SHUTDOWN_SECONDS = 10
"""Seconds that requests which are running have when the service stops."""


class StoppableServer(uvicorn.Server):
    """A server that says so before it waits for its connections, because pages listen for ever."""

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], Any]):
        super().__init__(config)
        self.stopping = stopping

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to stop; the second time, without waiting. The signal is not raised again: this is a normal end."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self.stopping()


def serve(config: ServiceConfig, *, host: str | None = None, port: int | None = None) -> None:
    """Serve the learners of a configuration until the process is asked to stop.

    Parameters
    ----------
    config : ServiceConfig
        What ``read_config`` returns.
    host, port : optional
        Where to listen, in place of the configuration's.

    Raises
    ------
    RegretlessError
        If a learner cannot be opened, or the address is refused or taken.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    service = Service(config, host=host)
    listener = listen(service.host, config.service.port if port is None else port)
    service.open()
    service.warm_up()
    tls = config.service.certificate is not None
    address = listener.getsockname()
    shown = f"[{address[0]}]" if ":" in address[0] else address[0]
    logging.getLogger("regretless.serve").info("ready: %s://%s:%s", "https" if tls else "http", shown, address[1])
    run_app(make_app(service), listener, service, config)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, in which requests wait until the service is ready; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only on sockets that say that they are TCP; otherwise each takes 40 ms
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise RegretlessError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None
    return listener


def run_app(app: FastAPI, listener: socket.socket, service: Service, config: ServiceConfig) -> None:
    """Run an application until the process is asked to stop; a second signal stops at once."""
    folder, table = config.folder, config.service
    options: dict[str, Any] = {}
    if table.certificate is not None and table.key is not None:
        options = {"ssl_certfile": folder / table.certificate, "ssl_keyfile": folder / table.key}
    settings = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_keep_alive=30,
        **options,
    )
    server = StoppableServer(settings, service.stopping.set)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    server.run(sockets=[listener])
