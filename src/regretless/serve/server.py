"""Run the service: open the learners, listen, and close everything when asked to stop."""

import logging
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI

from regretless.errors import RegretlessError
from regretless.serve.app import Service, make_app
from regretless.serve.config import ServiceConfig

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
    """Return a listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
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
