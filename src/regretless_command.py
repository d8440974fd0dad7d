"""Entry point of the command ``regretless``: Ctrl-C works before anything slow is imported."""

import os
import signal
import sys
from typing import Any


def main() -> None:
    """Run the command; Ctrl-C while it loads prints one line and exits with code 130."""
    signal.signal(signal.SIGINT, _stop)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show ± or θ gets a question mark, not a traceback
            stream.reconfigure(errors="replace")
    from regretless.cli.main import main as command

    command()


def _stop(signum: int, frame: Any) -> None:
    os.write(2, b"\nstopped: nothing was started yet\n")
    os._exit(130)
