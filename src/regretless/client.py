"""Use the learners of a service (``regretless serve``) like learners of this process; needs no extra."""

import http.client
import json
import random
import ssl
import threading
import time
import urllib.parse
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regretless import errors, files
from regretless.errors import RegretlessError, SettingsError
from regretless.live.records import Choice, Explanation, Receipt, plain_data

TRY_AGAIN = (429, 502, 503, 504)
"""Statuses after which the same request may succeed."""

MAX_PAUSE = 2.0
"""Seconds between two attempts, at most."""


class ServiceError(RegretlessError):
    """No answer of the service, or one that is none of the library's errors."""


class Client:
    """Connect to a service.

    Every request that changes something carries a key, so that it can be repeated: lost answers are asked for again,
    and nothing counts twice. A client may be used by several threads.

    Parameters
    ----------
    url : str
        The service, such as ``"http://127.0.0.1:8000"``.
    token : str, optional
        The access token, if the service has tokens.
    timeout : float, default 30
        Seconds for one attempt.
    patience : float, default 60
        Seconds for which a request is repeated if there is no answer, or one that says to try again.
    certificate : str or Path, optional
        A file with the certificates to trust, if the service's own is not signed by a known authority.

    Examples
    --------
    >>> from regretless.client import Client
    >>> Client("http://127.0.0.1:8000").learner("north")
    RemoteLearner('north' at http://127.0.0.1:8000)
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        patience: float = 60.0,
        certificate: str | Path | None = None,
    ):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"client: expected an address such as http://127.0.0.1:8000, got {url!r}")
        self.url = url.rstrip("/")
        self.timeout, self.patience = timeout, patience
        self._place, self._base = (parts.scheme, parts.hostname, parts.port), parts.path.rstrip("/")
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._tls = ssl.create_default_context(cafile=certificate) if parts.scheme == "https" else None
        self._local = threading.local()

    def learner(self, name: str) -> "RemoteLearner":
        """Return a learner of the service.

        Parameters
        ----------
        name : str
            Its name there.
        """
        return RemoteLearner(self, name)

    def learners(self) -> list[dict[str, Any]]:
        """Return all learners of the service with their states."""
        listed: list[dict[str, Any]] = self.ask("GET", "/v1/learners")
        return listed

    def create(self, name: str, template: str) -> "RemoteLearner":
        """Make a learner from a template of the service; one that is there already stays as it is.

        Parameters
        ----------
        name : str
            Letters a-z, digits, ``_`` and ``-``.
        template : str
            Its template in the configuration of the service.
        """
        self.ask("PUT", f"/v1/learners/{urllib.parse.quote(name, safe='')}", {"template": template})
        return self.learner(name)

    def ask(self, method: str, path: str, body: Any = None, *, raw: bool = False) -> Any:
        """Send a request, repeat it while there is no answer, and return the answer's data.

        Parameters
        ----------
        method : str
            Such as ``"GET"``.
        path : str
            The route.
        body : object, optional
            Data for JSON.
        raw : bool, default False
            Return bytes.

        Raises
        ------
        RegretlessError
            The error that the learner raised there, or ServiceError.
        """
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        deadline, pause = time.monotonic() + self.patience, 0.05
        while True:
            try:
                status, content = self._send(method, self._base + path, data)
                if status < 400:
                    return content if raw else json.loads(content)
                error = _restore_error(status, content)
                if status not in TRY_AGAIN:
                    raise error
            except (OSError, http.client.HTTPException) as problem:
                error = ServiceError(f"no answer from {self.url}: {problem or type(problem).__name__}")
            if time.monotonic() + pause > deadline:
                raise error
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2.0 * pause, MAX_PAUSE)

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
        self._local.connection = None

    def _send(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        """Send a request once, on this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            _, host, port = self._place
            if self._tls is None:
                connection = http.client.HTTPConnection(host, port, timeout=self.timeout)
            else:
                connection = http.client.HTTPSConnection(host, port, timeout=self.timeout, context=self._tls)
            self._local.connection = connection
        try:
            connection.request(method, path, data, self._headers)
            response = connection.getresponse()
            return response.status, response.read()
        except BaseException:
            self.close()
            raise


class RemoteLearner:
    """A learner of a service, with the methods of ``Learner``; ``Client.learner`` makes it.

    Arguments, results and errors are those of ``Learner``. Decisions without a key get a random one.

    Parameters
    ----------
    client : Client
        The connection.
    name : str
        The learner's name.
    """

    def __init__(self, client: Client, name: str):
        self.client, self.name = client, name
        self._path = f"/v1/learners/{urllib.parse.quote(name, safe='')}"

    def __repr__(self) -> str:
        return f"RemoteLearner({self.name!r} at {self.client.url})"

    def decide(self, context: Any, *, instance: Any = None, explore: bool = True, key: str | None = None) -> Choice:
        """Choose a decision for one context.

        Parameters
        ----------
        context, instance, explore, key
            As in ``Learner.decide``.
        """
        body = {"context": plain_data(context), "instance": plain_data(instance), "explore": explore}
        return _choice(self._post("decide", {**body, "key": key or _new_key()}))

    def decide_batch(
        self, contexts: Any, *, instances: Any = None, explore: bool = True, keys: Sequence[str | None] | None = None
    ) -> list[Choice]:
        """Choose decisions for several contexts, all or none.

        Parameters
        ----------
        contexts, instances, explore, keys
            As in ``Learner.decide_batch``.
        """
        rows = plain_data(contexts.to_dict("records") if hasattr(contexts, "to_dict") else contexts)
        names = [key or _new_key() for key in (keys if keys is not None else [None] * len(rows))]
        body = {"contexts": rows, "instances": plain_data(instances), "explore": explore, "keys": names}
        return [_choice(choice) for choice in self._post("decide-batch", body)]

    def record(self, context: Any, w: Sequence[float], *, instance: Any = None, key: str | None = None) -> Choice:
        """Keep a decision that a person made.

        Parameters
        ----------
        context, w, instance, key
            As in ``Learner.record``.
        """
        body = {"context": plain_data(context), "w": plain_data(w), "instance": plain_data(instance)}
        return _choice(self._post("record", {**body, "key": key or _new_key()}))

    def learn(
        self,
        id: int | str,
        *,
        total: float | None = None,
        components: Mapping[Any, float] | None = None,
        costs: Sequence[float] | None = None,
        linear: tuple[Any, Any] | None = None,
        values: Sequence[float] | None = None,
        final: bool = True,
    ) -> Receipt:
        """Learn from the feedback on a decision.

        Parameters
        ----------
        id, total, components, costs, linear, values, final
            As in ``Learner.learn``.
        """
        seen: dict[str, Any] = {"total": total, "costs": costs, "values": values, "components": components}
        body = {name: plain_data(part) for name, part in seen.items() if part is not None}
        if linear is not None:
            body["linear"] = {"rows": plain_data(linear[0]), "values": plain_data(linear[1])}
        return Receipt(**self._post("feedback", {**body, "id": id, "final": final}))

    def explain(self, choice: Choice | int | str) -> Explanation:
        """Explain a decision by what the learner knows now.

        Parameters
        ----------
        choice : Choice, int or str
            A choice, or the id or key of a decision that waits or was learned.
        """
        id = urllib.parse.quote(str(choice.id if isinstance(choice, Choice) else choice), safe="")
        explained = self.client.ask("GET", f"{self._path}/decisions/{id}/explanation")
        arrays = {name: np.array(explained[name]) for name in ("mean", "cost_sample", "greedy")}
        return Explanation(**{**explained, **arrays})

    def pause(self) -> None:
        """Give every decision to the incumbent at once."""
        self._post("pause")

    def resume(self) -> None:
        """End a pause."""
        self._post("resume")

    def update(self, /, **changes: Any) -> dict[str, Any]:
        """Change settings from the next call on.

        Parameters
        ----------
        **changes
            As in ``Learner.update``.
        """
        changed: dict[str, Any] = self.client.ask("PATCH", f"{self._path}/settings", {"settings": changes})
        return changed

    def settings(self) -> dict[str, Any]:
        """Return the settings of the policy and the rollout."""
        found: dict[str, Any] = self.client.ask("GET", f"{self._path}/settings")
        return found

    def health(self) -> dict[str, Any]:
        """Return how the learner is doing: ``Health.to_dict``, with a ``verdict`` in words."""
        found: dict[str, Any] = self.client.ask("GET", f"{self._path}/health")
        return found

    def history(self, path: str | Path) -> None:
        """Write all decisions with what came back to a CSV file.

        Parameters
        ----------
        path : path
            The file.
        """
        self._download("history.csv", path)

    def save(self, path: str | Path) -> None:
        """Write a compact copy of the learner, which ``Learner.open`` continues from.

        Parameters
        ----------
        path : path
            The file.
        """
        self._download("backup", path)

    def _download(self, route: str, path: str | Path) -> None:
        content = self.client.ask("GET", f"{self._path}/{route}", raw=True)
        with files.atomic(path) as file:
            file.write(content)

    def _post(self, route: str, body: Any = None) -> Any:
        return self.client.ask("POST", f"{self._path}/{route}", body)


def _new_key() -> str:
    return f"client-{uuid.uuid4().hex}"


def _choice(data: dict[str, Any]) -> Choice:
    """Return a choice from its JSON data, arrays as in this process."""
    fields = {name: data[name] for name in Choice.__dataclass_fields__ if name in data}
    arrays = {name: np.array(data[name]) for name in ("w", "cost_sample", "proposed") if data[name] is not None}
    fields |= arrays
    if isinstance(fields["context"], list):
        fields["context"] = np.array(fields["context"])
    return Choice(**fields)


def _restore_error(status: int, content: bytes) -> RegretlessError:
    """Return the library's error that a problem describes."""
    try:
        data = json.loads(content)
        name, text = str(data["title"]), str(data["detail"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"status {status}: {content[:200].decode(errors='replace')}")
    kind = getattr(errors, f"{name}Error", None)
    return kind(text) if isinstance(kind, type) and issubclass(kind, RegretlessError) else ServiceError(text)
