"""The findings of measured trials, remembered in the data folder: HOME/trials.json.

A result holds for one model on one computer with one set of packages; anything else is another key. The file
can be deleted at any time, and one that cannot be read counts as none.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import msgspec

from engines.facts import HardwareFacts
from engines.files import read_json, write_json

FILE = "trials.json"
_KEPT = 50
"""Results; the oldest go first."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One engine with one model, measured for some seconds on real questions.

    Rates are tokens a second: of the sampler's answers, and of everything the learner reads in a step.
    `memory_mb` is the highest that its process held."""

    engine: str
    dtype: str
    device: str
    sampler_tokens_per_s: float
    learner_tokens_per_s: float
    rounds_per_hour: float
    memory_mb: int
    load_s: float


class _TrialFile(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    trials: dict[str, Trial]


def key(fingerprint: str, facts: HardwareFacts) -> str:
    """16 hexadecimal digits for a model (engines.models.folder.fingerprint), this hardware and these
    packages."""
    parts = (
        fingerprint,
        facts.system,
        facts.machine,
        facts.cpu,
        str(facts.cores),
        str(facts.memory_mb // 1024),
        facts.driver,
        *(card.name for card in facts.cards),
        *(f"{name} {version}" for name, version in sorted(facts.packages.items())),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def recall(home: Path, key: str) -> dict[str, Trial]:
    """Engine to its trial; empty where nothing was measured."""
    kept = _read(home).get(key)
    return kept.trials if kept else {}


def remember(home: Path, key: str, trials: dict[str, Trial]) -> None:
    """Adds to what is known of that key, replacing older trials of the same engines. Raises OSError."""
    known = _read(home)
    before = known.get(key)
    known[key] = _TrialFile(at=time.time(), trials={**(before.trials if before else {}), **trials})
    newest = dict(sorted(known.items(), key=lambda pair: -pair[1].at)[:_KEPT])
    write_json(home / FILE, newest)


def _read(home: Path) -> dict[str, _TrialFile]:
    return read_json(home / FILE, dict[str, _TrialFile]) or {}
