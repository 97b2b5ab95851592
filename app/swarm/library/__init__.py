"""A swarm for other trainers: ask its questions, share your model's answers, learn from what others found.

    from shoal_swarm import join

    with join("shoal://join/...", name="our lab") as sea:
        questions = sea.questions(64, families=["gcd", "chain_sum"])
        ...
        sea.publish(groups)
        for group in sea.sample(8, answers=8):
            ...

What you publish, others can read: everybody in the swarm gets your answers to generated puzzles as text, under
a name made from this folder's key, and may keep them. Nothing else leaves this computer: no files, no
weights. Questions on which models are measured are never asked here nor published.

In this repository the package is `app.swarm.library`; `packaging/library` builds it as the distribution
`shoal-swarm`. Importing it loads nothing else: what a name needs comes with its first use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.swarm.library.records import Coordinates, Group, Published, Question, SeaError, Status
    from app.swarm.library.sea import Sea

__all__ = ["Coordinates", "Group", "Published", "Question", "Sea", "SeaError", "Status", "join"]


def join(where: str | Path, *, name: str = "", home: str | Path = "~/.shoal-swarm") -> Sea:
    """Joins a swarm, or opens an archive to read; use the result as a context manager.

    `where`: an invite link (shoal://join/...), six spoken words, ws://..., wss://... or HOST:PORT; or the path
    of an archive file that `shoal archive export` wrote, of a relay's folder, or of a data folder. `name`: what
    your model is called where others see it ("our lab" becomes "our-lab"), unless a group names its own model.
    `home`: the folder of your key (made at the first call), of the groups that wait for a relay, and of the
    relays that are known. Only one program at a time can use it.

    By joining you agree that others in the swarm read what you publish (see the module's docstring). Returns
    at once: a thread connects, sends and fetches, and connects again if a relay goes away. Raises SeaError,
    with one sentence, if `where` is no address or archive, or if `home` cannot be used."""
    from app.swarm.library.sea import Sea

    return Sea(where, name=name, home=Path(home).expanduser())


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from app.swarm.library import records, sea

    return getattr(sea if name == "Sea" else records, name)
