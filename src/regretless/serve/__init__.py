"""Serve many learners over HTTP, with a page to watch them (extra ``serve``)."""

from typing import TYPE_CHECKING, Any

from regretless.extras import require
from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.serve.app import make_app as make_app
    from regretless.serve.app import serve as serve
    from regretless.serve.config import check_config as check_config
    from regretless.serve.config import make_token as make_token
    from regretless.serve.config import read_config as read_config
    from regretless.serve.hosting import Service as Service
    from regretless.serve.watching import PageServer as PageServer
    from regretless.serve.watching import demo as demo
    from regretless.serve.watching import serve_learner as serve_learner
    from regretless.serve.watching import watch as watch

__all__, _load, __dir__ = lazy_exports(__name__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for package in ("fastapi", "uvicorn"):
            require(package, extra="serve")
    return _load(name)
