"""Is there room for a run? One bound on sizes, with the memory that would be needed in the message."""

import os
from collections.abc import Sequence

from regretless.errors import SettingsError
from regretless.simulate.programs import leaf_bytes

SHARE = 0.8
"""Of the machine's memory that a run may take."""


def memory() -> int:
    """Bytes of memory that this machine has; 8 GiB where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 8 * 2**30


def require_room(needed: float, what: str) -> None:
    """Refuses what would take more memory than there is."""
    if needed > SHARE * memory():
        raise SettingsError(
            f"{what} would need about {_told(needed)} of memory, this machine has {_told(memory())}: choose smaller numbers"
        )


def require_room_for_run(
    states: Sequence[object], replications: int, together: int, horizon: int, policies: int, decisions: int
) -> None:
    """Refuses a run whose results or states do not fit: ``states`` of one replication, ``together`` of them at a time.

    ``decisions`` is how many numbers are kept of each decision.
    """
    require_room(
        8.0 * replications * horizon * policies * (1 + decisions),
        f"{replications:,} replications of {horizon:,} rounds with {policies} policies",
    )
    own = sum(leaf_bytes(state) for state in states)
    require_room(3.0 * own * together, f"the states of {together:,} replications (delay, sizes of the problem)")


def _told(size: float) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"
