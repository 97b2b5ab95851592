"""Texts about engines for every place that shows one: what is available and its cost, progress, and errors."""

from __future__ import annotations

from app.install.packs.place import Offered, Pack
from app.ui.language.texts import number, size, tr
from app.ui.view.model_words import at_rate
from app.ui.view.view import EnginePack, PackActivity


def title(offer: Offered) -> str:
    """Returns what a pack is for, in a few words."""
    return _known(offer)[0] or offer.title or offer.name


def about(offer: Offered) -> str:
    return _known(offer)[1]


def _known(offer: Offered) -> tuple[str, str]:
    """Returns title and description of a pack; empty for one of a newer version."""
    kind, _, variant = offer.name.partition("_")
    known = {
        "cpu": (tr("For the processor"), tr("The smallest. Works on every computer.")),
        "cuda": (
            tr("For the NVIDIA card"),
            tr("Many times faster on a graphics card. The largest download."),
        ),
        "mlx": (tr("For Apple Silicon"), tr("Made for this kind of Mac, and the fastest there.")),
        "llamacpp": (tr("For the processor, with llama.cpp"), tr("Faster with bigger models.")),
    }
    return known.get(variant or kind) or known.get(kind) or ("", "")


def offers(pack: EnginePack, manage: bool) -> list[Offered]:
    """Returns the engines to choose from: all while none works; else the newer one or, to `manage`, all but the
    one in use."""
    used = pack.current
    if not pack.usable or used is None:
        return pack.offers
    if not manage:
        return [pack.newer] if pack.newer is not None else []
    return [one for one in pack.offers if one.name != used.name or one.version not in ("", used.version)]


def cost_of(pack: EnginePack, offer: Offered | None) -> str:
    """Returns a sentence on the download and the disk space that an installation takes, or on why nothing can
    be installed."""
    if pack.standing is None:
        return tr("Looking for the right engine.")
    if offer is None:
        return pack.standing.problem or tr(
            "There's no engine for this computer to download. Pick a folder that has one."
        )
    if not offer.bytes:
        return tr("Shoal asks for its size first, and downloads only if it fits.")
    if offer.carried:
        come = tr("Nothing to download: it came with Shoal.")
    elif offer.have:
        left = size(max(0, offer.bytes - offer.have))
        come = tr("{size} to download; {have} already here.", size=left, have=size(offer.have))
    else:
        come = tr("{size} to download, once; nothing of yours is sent.", size=size(offer.bytes))
    free = size(pack.standing.free)
    room = tr("{size} of disk space needed meanwhile; {free} free.", size=size(offer.disk), free=free)
    return f"{come} {room}"


def disk_space_problem(offer: Offered, free: int) -> str:
    """Returns a sentence if the disk has no room for the pack; else empty."""
    lacking = offer.disk - offer.have - free
    if not offer.disk or lacking <= 0:
        return ""
    return tr("Not enough disk space: {size} more needed.", size=size(lacking))


def install_label(pack: EnginePack, offer: Offered | None) -> str:
    """Returns the text of the button that starts the installation."""
    if offer is not None and offer.have:
        return tr("Resume installation")
    return tr("Reinstall the engine") if pack.named and not pack.there else tr("Install the engine")


def heading(pack: EnginePack) -> str:
    doing = pack.doing
    if doing is not None:
        return {
            "install": tr("Installing the engine"),
            "repair": tr("Repairing the engine"),
            "remove": tr("Removing the engine"),
        }[doing.verb]
    if pack.broken:
        return tr("The engine doesn't work any more")
    if pack.there and pack.newer is not None:
        return tr("A newer engine is available: {version}.", version=pack.newer.version)
    return tr("The engine is missing") if pack.named else tr("The engine isn't installed")


def reason(pack: EnginePack) -> str:
    """Returns a sentence on why the engine is worth installing."""
    if pack.broken:
        return tr("It's damaged, or something it needs is gone. Repair it; what your model learned is safe.")
    if pack.named:
        return tr("Learning needs it, but it doesn't start. What your model learned is safe.")
    return tr("Shoal learns with PyTorch, a large program that is installed once. Remove it any time.")


def stage(doing: PackActivity) -> str:
    """Returns what is being done at the moment."""
    known = {
        "fetch": tr("Reading its files") if doing.offline else tr("Downloading"),
        "make": tr("Setting it up"),
        "check": tr("Checking that it loads"),
    }
    return known.get(doing.stage, tr("Beginning"))


def progress(doing: PackActivity) -> str:
    """Returns the progress: "Downloading: 112 MB of 297 MB, 12 MB a second, about 15 s left"."""
    line = stage(doing)
    if doing.total:
        line = tr("{line}: {have} of {total}", line=line, have=size(doing.have), total=size(doing.total))
    return at_rate(line, doing)


def short(doing: PackActivity) -> str:
    """Returns the progress in short, for the side bar."""
    return tr("{stage}, {n} %", stage=stage(doing), n=number(doing.percent))


def installed(pack: Pack) -> str:
    """Describes an installed engine: "0.1.0, Python 3.11, 1.1 GB"."""
    from app.install.packs.place import parts

    python = tr("Python {version}", version=pack.python) if pack.python else ""
    version = parts(pack.pack)[1]
    return "  ·  ".join(filter(None, (version, python, size(pack.bytes))))
