"""Where the command ``regretless`` begins: Ctrl-C is understood before anything slow is imported."""

import os
import signal
import sys
from typing import Any


def main() -> None:
    """Runs the command; whatever is pressed while it loads, the answer is one line and exit code 130."""
    signal.signal(signal.SIGINT, _stop)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show ± or θ gets a question mark, not a traceback
            stream.reconfigure(errors="replace")
    from regretless.cli.main import main as command

    command()


def _stop(signum: int, frame: Any) -> None:
    os.write(2, b"\nstopped: nothing has begun yet\n")
    os._exit(130)
