"""`./shoal pack`: installs the engine of an installed app. A checkout has its own and needs no pack.

The window runs it as a separate process with --json, and shows its output."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.cli._frame import share
from app.cli._terminal import (
    JobLines,
    UnansweredError,
    WrongUsage,
    confirm,
    json_line,
    report_failure,
    stop_quietly,
)
from app.common import files
from app.common.job import Tell
from app.common.text import in_bytes
from app.desktop.nvidia import card_present
from app.install import InstallError
from app.install.packs import manifest, place, programs
from app.install.packs.installing import PackInstaller
from app.install.packs.manifest import SignedManifest
from app.install.packs.offered import chosen_in, load_manifest, newer, offered
from app.install.packs.place import PackDone, PackStatus
from engines import remedy

SUMMARY = "install, check, repair or remove the engine of an installed app"
VERBS = ("install", "check", "repair", "list", "remove")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "verb", nargs="?", choices=VERBS, default="list", metavar="{" + ",".join(VERBS) + "}", help="list"
    )
    parser.add_argument(
        "pack", nargs="?", default="", help="install: cpu, cuda, ... (what suits); remove: the one listed"
    )
    parser.add_argument(
        "--manifest", metavar="URL|FILE", help="what the pack consists of (default: this version's own)"
    )
    parser.add_argument(
        "--offline", type=Path, metavar="DIR", help="take the files from here and ask no network"
    )
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help="believe this public key, for packs made by oneself"
    )
    parser.add_argument(
        "--older", action="store_true", help="install: also what is older than one that was here"
    )
    share(parser, "yes", "json", "attached")


def main(args: argparse.Namespace) -> int:
    """Returns 0 when done, 1 after printing an error, 2 for wrong usage."""
    root = place.folder()
    if args.pack and args.verb not in ("install", "remove"):
        raise WrongUsage(f"{args.verb.capitalize()} takes no name; see {remedy.command('pack --help')}.")
    tell = json_line if args.json else JobLines().show
    with report_failure(args.json, InstallError, UnansweredError):
        if args.verb == "list":
            return _list(args.json)
        if args.verb == "remove":
            return _remove(PackInstaller(root, tell), args)
        if args.verb == "check":
            return _check(root, tell)
        stop_quietly("pack", args.attached)
        if sys.platform == "win32":  # elsewhere a child keeps the lock, and is waited for
            from app.common.process.memory import end_together
            from app.desktop.windows import leave_bundle

            end_together()
            leave_bundle(getattr(sys, "_MEIPASS", "") or sys.prefix)
        keys = _keys(args)
        oldest = None if args.key else {name: one.made for name, one in manifest.trust().offers.items()}
        installer = PackInstaller(root, tell, oldest=oldest, older=args.older)
        offline = args.offline.expanduser().absolute() if args.offline else None
        if args.verb == "repair":
            if not (used := place.current(root).current):
                raise InstallError(
                    f"There is no engine to repair: install one with {remedy.command('pack install')}."
                )
            args.pack = place.parts(used)[0]
        installer.install(*_wanted(args, keys, offline), again=args.verb == "repair")
    return 0


def _keys(args: argparse.Namespace) -> tuple[str, ...]:
    """Returns the public keys whose manifests are trusted. Raises InstallError."""
    if args.key is None:
        return manifest.trust().keys
    try:
        key = args.key.read_text(encoding="ascii").strip()
        if len(bytes.fromhex(key)) != 32:
            raise ValueError
    except (OSError, ValueError):
        raise InstallError(
            f"{args.key} holds no public key (64 hexadecimal digits): name the right file."
        ) from None
    return (key.lower(),)


def _wanted(
    args: argparse.Namespace, keys: tuple[str, ...], offline: Path | None
) -> tuple[SignedManifest, Path | None]:
    """Returns the manifest that was named, or the one in the offline folder, or this version's at its address;
    without a name, the one that suits this computer. Also returns the folder with the files if they are not
    downloaded."""
    if args.manifest:
        return load_manifest(args.manifest, keys), offline
    if offline is not None:
        path = offline / f"{args.pack}.json" if args.pack else chosen_in(offline, card_present())
        return _named(path.stem, load_manifest(str(path), keys)), path.parent
    known = manifest.trust().manifests
    name = args.pack or next((one.name for one in _standing().offers if one.name in known), "cpu")
    if name not in known:
        raise InstallError(
            f"There is no engine {name[:60]!r} for this Shoal ({', '.join(known) or 'it names none'}): name "
            "its manifest with --manifest."
        )
    return _named(name, load_manifest(known[name], keys)), None


def _named(name: str, found: SignedManifest) -> SignedManifest:
    """Returns `found` if it is a manifest of the pack `name`. Raises InstallError if not."""
    if found.manifest.name != name:
        raise InstallError(
            f"The manifest of {name!r} is that of {found.manifest.name!r}, so nothing was installed: tell "
            "its publisher."
        )
    return found


def _check(root: Path, tell: Tell) -> int:
    """Checks that the engine in use computes. Raises InstallError."""
    if fault := programs.engine_fault(root):
        raise InstallError(fault)
    used = place.current(root).current
    python = place.interpreter(root / used)
    tell(PackDone(pack=used, python=str(python), sentence="The engine loads."))
    return 0


def _standing() -> PackStatus:
    """Returns which packs are installed and available; nothing is available to a checkout."""
    root, problem, known = place.folder(), "", None
    packs = PackInstaller(root, lambda _: None).installed_packs()
    try:
        known = manifest.trust()
    except InstallError as error:
        problem = str(error)
    offers = offered(known, root, place.carried(), card_present()) if known is not None else []
    return PackStatus(
        folder=str(root),
        packs=packs,
        offers=offers,
        newer=newer(offers, place.current(root).current),
        free=files.free_bytes(root),
        problem=problem,
    )


def _list(as_json: bool) -> int:
    standing = _standing()
    if as_json:
        json_line(standing)
        return 0
    for pack in standing.packs:
        print(f"{pack.pack:20} {in_bytes(pack.bytes):>12}  {'in use':20} {pack.title}")
    if not standing.packs:
        print("No engine is installed here; a checkout has its own in .venv.")
    for offer in standing.offers:
        size = f"{in_bytes(offer.bytes)}, {in_bytes(offer.disk)} of room" if offer.bytes else ""
        print(f"Can be installed: {remedy.command(f'pack install {offer.name}')}  {offer.title}  {size}")
    return 0


def _remove(installer: PackInstaller, args: argparse.Namespace) -> int:
    what = args.pack or "every engine"
    if not confirm(f"Remove {what} from {installer.root}?", args.yes):
        print("Nothing was removed.", file=sys.stderr)
        return 1
    freed = installer.remove(args.pack)
    if args.json:
        json_line({"event": "removed", "pack": args.pack, "freed": freed})
    else:
        print(f"Removed {what}; {in_bytes(freed)} are free again.", file=sys.stderr)
    return 0
