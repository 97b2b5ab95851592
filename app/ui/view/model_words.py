"""Texts about a model for every place that shows one: its size, whether it fits, what it has learned, its
download's progress."""

from __future__ import annotations

import time

from app.models.catalogue import STARTER, find
from app.models.fit import FitVerdict
from app.models.gguf_shelf import is_gguf
from app.node.data.library import Library, ModelEntry
from app.ui.language.texts import counted, family_titles, number, percent, size, span, tr
from app.ui.view.view import Fetch, Transfer


def fit(model: ModelEntry, library: Library) -> tuple[str, str, str]:
    """Returns (look, word, sentence) on whether the model can run here; three empty texts if that is
    unknown."""
    if model.fit is None:
        return "", "", ""
    need, free = size(model.learning), size(library.memory.free)
    match model.fit.verdict:
        case FitVerdict.TOO_LARGE:
            most = size(library.memory.most)
            said = tr("Needs {need} of memory; this computer can give {most}.", need=need, most=most)
            return "bad", tr("Too large"), said
        case FitVerdict.NO_DISK:
            need, free = size(bytes_to_download(model)), size(library.disk_free)
            said = tr("Needs {need} of disk space; {free} free. Free up some space.", need=need, free=free)
            return "bad", tr("No room"), said
        case FitVerdict.CROWDED:
            said = tr("Needs {need} of memory; {free} free right now. Close other apps.", need=need, free=free)
            return "warn", tr("Not at the moment"), said
        case FitVerdict.TIGHT:
            said = tr("Runs, but slower: {need} of memory would be good; {free} free.", need=need, free=free)
            return "warn", tr("Tight"), said
        case _:
            return "good", tr("Fits"), tr("Needs {need} of memory; {free} free.", need=need, free=free)


def facts(model: ModelEntry) -> str:
    """One line with the model's size, licence, what it has learned, its pace, and its folder if it is local."""
    parts = [size(model.bytes) if model.bytes else "", model.licence]
    if model.training is not None:
        rounds = counted("{n} round learned", "{n} rounds learned", model.training.rounds)
        parts.append(tr("{rounds}, {size}", rounds=rounds, size=size(model.training.bytes)))
    elif model.installed:
        parts.append(tr("nothing learned yet"))
    parts.append(pace(model))
    if model.local:
        parts.append(model.name if is_gguf(model.name) else model.folder)
    return "  ·  ".join(part for part in parts if part)


def pace(model: ModelEntry) -> str:
    """Returns how fast the model learns here, or usually learns on such a computer; empty if unknown."""
    if not model.round_s:
        return ""
    if model.round_s > 3600:
        return tr("about {span} a round", span=span(model.round_s))
    return counted("about {n} round an hour", "about {n} rounds an hour", _rough(3600 / model.round_s))


def fits_here(model: ModelEntry, library: Library) -> str:
    """Returns a sentence on whether a model fits here, and how fast it learns: "Starter: Fits, about 1 200
    rounds an hour." """
    return f"{tr(model.title)}: {', '.join(filter(None, (fit(model, library)[1], pace(model))))}."


def _rough(rate: float) -> int:
    """Rounds to two significant digits.

    >>> _rough(1234.0), _rough(57.4), _rough(1.4)
    (1200, 57, 1)
    """
    return int(round(rate, -max(0, len(str(int(rate))) - 2)))


_NAMED = 5
"""Maximum families that a line names."""


def begins(model: ModelEntry) -> str:
    """Returns what the model can begin with and what is too hard; empty before its placement."""
    training = model.training
    if training is None or not (training.begins or training.waiting):
        return ""
    hard = tr("Too hard yet: {families}.", families=", ".join(family_titles(training.waiting)))
    if len(training.waiting) > _NAMED:
        hard = tr("{n} other kinds are too hard yet.", n=number(len(training.waiting)))
    if not training.begins:
        return hard
    can = tr("It can begin with: {families}.", families=", ".join(family_titles(training.begins)))
    return f"{can}\n{hard}" if training.waiting else can


def about(model: ModelEntry) -> str:
    """Returns a line that describes the model: the catalogue's, translated if there is a translation."""
    if model.about:
        return tr(model.about)
    if model.program:
        return tr("Already on this computer. {program} keeps its own copy.", program=model.program)
    if is_gguf(model.name):
        return tr("A file of your own; it stays where it is.")
    return tr("A folder of your own; it stays where it is.") if model.local else tr("Not in Shoal's catalogue.")


def bytes_to_download(model: ModelEntry) -> int:
    """Returns the bytes that are still to be downloaded."""
    return max(0, model.bytes - (model.partial.have if model.partial else 0))


def progress(fetch: Fetch, whole: int = 0) -> str:
    """Returns the progress of a download: "312 MB of 995 MB, 4.2 MB a second, about 3 min left"; or why it
    waits, and for how long."""
    if fetch.note and fetch.retry_at is not None:
        return tr("{why} Again in {span}.", why=fetch.note, span=span(max(1.0, fetch.retry_at - time.time())))
    if fetch.note:
        return fetch.note
    if not fetch.total:
        return tr("Looking for the files.")
    line = tr(
        "{have} of {total} ({share})",
        have=size(fetch.have),
        total=size(fetch.total),
        share=percent(fetch.have / fetch.total),
    )
    entry = find(fetch.name)
    wheel = entry.package.wheel_bytes if entry is not None and entry.package is not None else None
    if whole and fetch.total == wheel:
        line = tr("{line}, unpacks to {size}", line=line, size=size(whole))
    if fetch.have >= fetch.total:
        return tr("{line}, checking", line=line)
    return at_rate(line, fetch)


def at_rate(line: str, transfer: Transfer) -> str:
    """Appends the transfer's speed and the time left to a line, as far as they are known."""
    if transfer.per_second:
        line = tr("{line}, {rate} a second", line=line, rate=size(transfer.per_second))
    if transfer.left_s is not None and transfer.left_s >= 1:
        line = tr("{line}, about {span} left", line=line, span=span(transfer.left_s))
    return line


def consent(model: ModelEntry, library: Library, host: str) -> str:
    """Returns the text to agree to before a download: host, size, licence, disk space."""
    packaged = find(model.name)
    asked = tr(
        "Download {title} from {host}? {size}; you have {free} free. {host} sees your IP address and the "
        "model's name.",
        title=model.title,
        host=host,
        size=size(bytes_to_download(model)),
        free=size(library.disk_free),
    )
    if speed := pace(model):
        asked += " " + tr("Here it learns {pace}.", pace=speed)
    apart = tr("Learning on its own stays offline either way.")
    if packaged is not None and packaged.package is not None:
        wheel = size(packaged.package.wheel_bytes)
        other = tr("If {host} doesn't answer, it comes as a Python package of {size}.", host=host, size=wheel)
        return f"{asked} {other} {apart}"
    return f"{asked} {apart}"


def deleting(model: ModelEntry) -> str:
    """Returns sentences on what is deleted and what stays."""
    if is_gguf(model.name):
        return tr(
            "{title} leaves this list and frees {size}. The file and what it learned stay.",
            title=model.title,
            size=size(model.bytes),
        )
    if model.local:
        return tr("{title} leaves this list. The folder and what it learned stay.", title=model.title)
    if not model.installed:
        return tr(
            "Deletes what was downloaded of {title} ({size}).",
            title=model.title,
            size=size(model.partial.have if model.partial else 0),
        )
    goes = tr("Deletes {title} and frees {size}.", title=model.title, size=size(model.bytes))
    if model.training is None:
        return goes
    kept = tr(
        "What it learned here stays ({rounds}, {size}). Download the model again to use it.",
        rounds=counted("{n} round", "{n} rounds", model.training.rounds),
        size=size(model.training.bytes),
    )
    return f"{goes} {kept}"


def switching(model: ModelEntry, running: bool) -> str:
    """Returns a sentence on what choosing another model does."""
    own = (
        tr("It continues after round {n}.", n=number(model.training.rounds))
        if model.training is not None and model.training.rounds
        else tr("It starts with round 1.")
    )
    now = tr("Learning switches over right away.") if running else tr("Learning starts right away.")
    kept = tr("Each model has its own history and keeps what it learned.")
    return f"{kept} {own} {now}"


def is_starter(model: ModelEntry) -> bool:
    return model.name == STARTER
