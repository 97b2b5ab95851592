"""Views of an installed app: without an engine, with one on its way, with a broken one. Made up, but
for the sentences, which are those of app.install.packs."""

from __future__ import annotations

import msgspec

from app.install.packs.place import Offered, Pack, PackStatus
from app.ui.view.view import EnginePack, NodeStatus, PackActivity, Problem, View
from tests.ui import views

FOLDER = "/home/Jörg Müller/.local/share/shoal/packs"
CPU = Offered(
    name="cpu", version="0.2.0", title="The engine for processors", bytes=296_891_991, disk=1_484_459_955
)
CUDA = Offered(
    name="cuda", version="0.2.0", title="The engine for NVIDIA", bytes=2_750_000_000, disk=9_600_000_000
)
USED = Pack(
    pack="cpu-0.1.0",
    name="cpu",
    version="0.1.0",
    title="The engine for processors",
    bytes=1_102_000_000,
    python="3.11",
)
FETCHING = PackActivity(
    verb="install",
    stage="fetch",
    percent=29,
    have=112_000_000,
    total=296_891_991,
    per_second=12_400_000.0,
    left_s=15.0,
)
TROUBLES = {
    "no network": "files.example.org can't be reached: check the network connection, "
    "then try again. Nothing is lost.",
    "login": "The proxy asks for a name and a password: put them into its address "
    "(HTTPS_PROXY=http://name:password@proxy:port), then try again.",
    "full": f"The engine for processors needs 1.7 GB on the disk that holds {FOLDER}, and 0.4 GB are free: "
    "free up some space, then try again.",
    "read-only": f"{FOLDER} can't be written (Permission denied): make that folder yours to write, then "
    "try again.",
    "signature": "The manifest isn't signed by the makers of this Shoal, so nothing was installed: take the "
    "one that belongs to this version.",
}


def standing(
    *offers: Offered, packs: tuple[Pack, ...] = (), free: int = 58_300_000_000, newer: str = ""
) -> PackStatus:
    return PackStatus(folder=FOLDER, packs=list(packs), offers=list(offers), free=free, newer=newer)


def first() -> dict[str, EnginePack]:
    """Before there was any engine."""
    change = msgspec.structs.replace
    new = EnginePack(there=False, standing=standing(CPU))
    made = {
        "looking": EnginePack(there=False),
        "new": new,
        "choice": change(new, standing=standing(CUDA, CPU)),
        "begun": change(new, standing=standing(change(CPU, have=112_000_000))),
        "crowded": change(new, standing=standing(CPU, free=600_000_000)),
        "carried": change(new, standing=standing(change(CPU, carried="/opt/shoal/packs"))),
        "unnamed": EnginePack(there=False, standing=standing()),
        "unsized": EnginePack(there=False, standing=standing(Offered(name="cpu"))),
        "fetching": change(new, doing=FETCHING),
        "waiting": change(
            new,
            doing=change(
                FETCHING,
                note="The connection to files.example.org broke off; what has come is kept, and it can go on.",
            ),
        ),
        "making": change(
            new,
            doing=PackActivity(verb="install", stage="make", percent=83),
        ),
    }
    return (
        made
        | {name: change(new, failed=said) for name, said in TROUBLES.items()}
        | {
            "wrong folder": change(
                new,
                failed="/media/stick holds no engine: choose the folder with the engine's files; one of them "
                "has a name such as cpu.json.",
                failed_offline=True,
            )
        }
    )


def later() -> dict[str, EnginePack]:
    """When there was one."""
    change = msgspec.structs.replace
    whole = EnginePack(
        there=True, named=True, standing=standing(change(CPU, version="0.1.0"), CUDA, packs=(USED,))
    )
    said = (
        "The engine is in place but doesn't load (ModuleNotFoundError: No module named 'torch'): repair it "
        "with shoal pack repair, or install it again."
    )
    return {
        "whole": whole,
        "newer": change(whole, standing=standing(CPU, packs=(USED,), newer="cpu")),
        "newer comes": change(whole, standing=standing(CPU, packs=(USED,), newer="cpu"), doing=FETCHING),
        "broken": change(whole, broken=said),
        "repairing": change(whole, broken=said, doing=change(FETCHING, verb="repair")),
        "gone": change(whole, there=False),
    }


def lacking(pack: EnginePack) -> View:
    """Somebody wants to learn for the first time, and there is no engine yet."""
    problem = Problem(title="The engine isn't installed", sentence="There's none.", remedy="Install it.")
    return View(home="/tmp", pack=pack, state=NodeStatus.FAILED, problem=problem, reason=problem.sentence)


def scenes() -> list[tuple[str, str, View]]:
    """(name, page, view)"""
    made = [(f"engine-first-{name}", "overview", lacking(pack)) for name, pack in first().items()]
    failed = views.failed()
    for name, pack in later().items():
        view = views.learning() if pack.usable else failed
        view = msgspec.structs.replace(view, pack=pack)
        made += [(f"engine-later-{name}", "overview", view), (f"engine-settings-{name}", "settings", view)]
    return [(name.replace(" ", "-"), page, view) for name, page, view in made]
