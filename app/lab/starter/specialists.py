"""Specialists: adapters over the starter that know some families of a regime and only guess at the others.

Each is the starter taught on in supervised steps: half of every batch shows worked answers of its own families,
half shows wrong guesses of the others. So it answers its own families with work and has lost the habit of work
elsewhere, where nothing but an improbable success or a peer can bring it back. The starter called `seldom` is
taught the work of all families for two thirds of the steps, then wrong guesses with a few worked answers among
them: it can do them all, and seldom does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import msgspec

from app.lab.regime import families_of
from app.lab.starter.corpus import CorpusExample, Mix, examples
from app.learning.zero import imitate
from app.sapo import seeds
from app.sapo.asking import messages
from engines.torch_lora import open_swarm


class Teaching(msgspec.Struct, frozen=True, kw_only=True):
    """How specialists are taught; with the starter and a name it fixes the result."""

    steps: int = 160
    batch: int = 64
    rate: float = 2e-3
    rank: int = 16
    seed: int = 5
    seldom: float = 0.08
    """Share of worked answers in what `seldom` is taught last."""


def teach(
    model: Path,
    names: tuple[str, ...],
    levels: Mapping[str, int],
    out: Path,
    teaching: Teaching | None = None,
    threads: int | None = None,
    tell: Callable[[str, int], None] = lambda name, step: None,
) -> list[Path]:
    """Makes each specialist that is not in `out` yet and returns all their folders: PEFT adapters whose
    optimiser has not made a step. Raises RegimeError before anything is made."""
    teaching = teaching or Teaching()
    known = {name: families_of(name, levels) for name in names}
    for name, own in known.items():
        if (out / name / "adapter_model.safetensors").exists():
            continue
        swarm = open_swarm(model, [teaching.seed], rank=teaching.rank, threads=threads)
        lessons = _lessons(own, levels, teaching)
        for step in range(teaching.steps):
            sequences = [
                swarm.encode(messages(example.question), example.completion, True)
                for example in islice(lessons, teaching.batch)
            ]
            swarm.step(0, imitate(sequences, teaching.rate))
            tell(name, step + 1)
        swarm.begin_anew(0)
        swarm.save(0, out / name)
    return [out / name for name in known]


def _lessons(own: tuple[str, ...], levels: Mapping[str, int], teaching: Teaching) -> Iterator[CorpusExample]:
    """What a specialist of these families is taught, or a node that seldom shows its work."""
    return _special(own, levels, teaching) if own else _seldom(levels, teaching)


def _seldom(levels: Mapping[str, int], teaching: Teaching) -> Iterator[CorpusExample]:
    """Examples of all families: as many worked answers as wrong guesses for two thirds of the steps, then few
    worked."""
    mix = Mix(worked_share=0.5, slip=0.0, wrong_guess=1.0)
    skill = _only(set(levels), levels, mix, seeds.hashed("skill", teaching.seed))
    yield from islice(skill, 2 * teaching.steps // 3 * teaching.batch)
    mix = msgspec.structs.replace(mix, worked_share=teaching.seldom)
    yield from _only(set(levels), levels, mix, seeds.hashed("seldom", teaching.seed))


def _special(own: tuple[str, ...], levels: Mapping[str, int], teaching: Teaching) -> Iterator[CorpusExample]:
    """Worked answers of the specialist's families and wrong guesses of the others, in turns."""
    worked = _only(
        set(own), levels, Mix(worked_share=1.0, slip=0.0), seeds.hashed("worked", teaching.seed, *own)
    )
    guessed = _only(
        set(levels) - set(own),
        levels,
        Mix(worked_share=0.0, wrong_guess=1.0),
        seeds.hashed("guessed", teaching.seed, *own),
    )
    while True:
        yield next(worked)
        yield next(guessed)


def _only(families: set[str], levels: Mapping[str, int], mix: Mix, seed: int) -> Iterator[CorpusExample]:
    """Examples of these families, each at its level of the regime."""
    streams = {
        family: examples(
            msgspec.structs.replace(mix, level_shares=(*[0.0] * levels[family], 1.0)),
            seeds.hashed(family, seed),
            (family,),
        )
        for family in sorted(families)
    }
    while True:
        for stream in streams.values():
            yield next(stream)
