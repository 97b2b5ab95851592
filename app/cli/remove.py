"""`./shoal remove --everything`: removes everything that Shoal learned, stored or registered on this
computer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from app.cli._frame import share, tell
from app.cli._terminal import WrongUsage, confirm, say
from app.common.home import home
from app.common.text import in_bytes
from engines import remedy

SUMMARY = "delete everything that Shoal keeps on this computer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--everything", action="store_true", help="say that it is meant")
    parser.add_argument("--list", action="store_true", help="tell what would go and what would stay")
    share(parser, "json", "yes", "home")


def main(args: argparse.Namespace) -> int:
    from app.node.data import removal

    if args.list:
        plan = removal.plan(home(args.home))
        tell(args, "\n".join(removal_lines(plan)), **msgspec.to_builtins(plan))
        return 0
    if not args.everything:
        meant = remedy.command("remove --everything")
        raise WrongUsage(f"Nothing was removed: say what you mean with {meant}; --list tells what that is.")
    folder = home(args.home)
    plan = removal.plan(folder)
    for line in removal_lines(plan):
        say(line, sys.stderr)
    if not confirm("Remove all this?", args.yes):
        print("shoal remove: Nothing was removed.", file=sys.stderr)
        return 1
    done = removal.remove(folder)
    for sentence in done.failed:
        say(f"shoal remove: {sentence}", sys.stderr)
    print("Everything is removed." if not done.failed else "The rest is removed.", file=sys.stderr)
    return 1 if done.failed else 0


def removal_lines(plan: object) -> list[str]:
    """Returns lines for people: what is removed and what stays."""
    from app.node.data.removal import RemovalPlan

    assert isinstance(plan, RemovalPlan)
    lines = [f"This will be deleted for good ({in_bytes(plan.bytes)}):", f"  {plan.folder}"]
    lines += [f"    {size.label}: {in_bytes(size.bytes)}" for size in plan.sizes]
    if plan.key:
        lines.append(f"  the key of {plan.key} in the system's keyring (entry Shoal)")
    lines.append("  an access token for models in the system's keyring (entry Shoal), if you gave one")
    if plan.login:
        lines.append(f"  the entry that starts Shoal at login ({plan.login})")
    if plan.engine:
        lines.append(f"  the engine in {plan.engine} ({in_bytes(plan.engine_bytes)})")
    if plan.unpacked:
        lines.append(f"  what the single file unpacked, {plan.unpacked} ({in_bytes(plan.unpacked_bytes)})")
    lines += [f"  {path}, by which links and menus find Shoal" for path in plan.links]
    if plan.pointer:
        lines.append(f"  {plan.pointer}, which remembers where the data folder is")
    lines.append("This stays:")
    lines += [f"  {Path(plan.folder) / name}, which is not Shoal's" for name in plan.stays]
    lines.append(f"  the program itself, {plan.program}; to delete it: {plan.removal}")
    lines.append("  models and exports that you keep in other folders, and system packages")
    return lines
