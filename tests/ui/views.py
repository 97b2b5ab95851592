"""Views to show: none, one from a real run, a full swarm, and the odd ones. Everything here is made up except
what is read from a history."""

from __future__ import annotations

import math
import random
import time
from functools import cache
from pathlib import Path

import msgspec

from app.chat import messages
from app.models.catalogue import entries
from app.models.fit import Fit, FitVerdict, MemoryRoom, assess_fit, needs
from app.models.shelf import PartialDownload
from app.node.data.library import Library, ModelEntry, Training
from app.node.history import history
from app.node.models.survey import STARTER_ABOUT
from app.node.record.reasons import EFFORTS, Dial, Reason
from app.node.record.records import GroupRow, LogEntry, Probe, Round, Run
from app.node.record.snapshot import Ruling, SwarmView
from app.node.rules.preferences import DEFAULTS
from app.sapo.questions import Coordinates
from app.swarm.client.status import Peer
from app.swarm.identity.identity import node_name
from app.swarm.wire.limits import LoggedMessage
from app.ui.chat.page import TryIt
from app.ui.view.reducer import Fold
from app.ui.view.view import Fetch, Holdings, NodeStatus, Persona, Problem, ServedDoor, Step, View
from engines.contract import EngineInfo

NOW = time.time()
SIX = "final satisfy salute enhance since monitor"
"""Of nobody's swarm."""
ENGINE = EngineInfo(
    name="torch",
    device="CPU",
    dtype="float32",
    model="starter",
    parameters=1_679_616,
    trainable=221_184,
    threads=2,
    memory_budget_mb=15_535,
)
_FAMILIES = (
    "base_conversion",
    "basic_arithmetic",
    "chain_sum",
    "count_bits",
    "fraction_simplification",
    "gcd",
    "lcm",
    "simple_equations",
    "spell_backward",
)
QUESTIONS = {
    "gcd": (
        "Find the greatest common divisor of 24 and 36. Give only the number.",
        "36 24 12 0 #12",
        "24 12 0 #24",
    ),
    "chain_sum": (
        "State the final answer to the following arithmetic problem: 7 - 3 + 9 =",
        "7-3=4 4+9=13 #13",
        "7-3=5 5+9=14 #14",
    ),
    "lcm": ("Find the least common multiple of 6 and 8.", "8 6 2 0 6/2=3 8*3=24 #24", "8 6 0 8*6=48 #48"),
    "spell_backward": (
        "Spell this word backward (example: sun -> nus): salmon",
        "n o m l a s #nomlas",
        "n o m a s #nomas",
    ),
    "base_conversion": ("Convert the base-3 number 211 to base-2.", "2*9+1*3+1=22 #10110", "2*9+3=21 #10101"),
}


def rising(rounds: int, every: int = 10, seed: int = 1) -> tuple[Probe, ...]:
    """A curve as a good run has it."""
    dice = random.Random(seed)
    made = []
    for at in range(0, rounds + 1, every):
        share = 0.22 + 0.34 * (1 - math.exp(-at / 60)) + dice.gauss(0, 0.012)
        made.append(
            Probe(
                round=at,
                share=share,
                stderr=math.sqrt(share * (1 - share) / 256),
                at=NOW - (rounds - at) * 4,
                questions=256,
                families={
                    family: min(1.0, max(0.0, share + 0.09 * (place - 4)))
                    for place, family in enumerate(_FAMILIES)
                },
            )
        )
    return tuple(made)


def learning(rounds: int = 160, **fields: object) -> View:
    """A node in the middle of its work."""
    dice = random.Random(7)
    fold = Fold(View(home="/home/ada/.local/share/shoal", willing=True))
    rows = []
    for at in range(1, rounds + 1):
        when = NOW - (rounds - at) * 4 - 2
        share = 0.2 + 0.35 * (1 - math.exp(-at / 50))
        found = {}
        for place, family in enumerate(dice.sample(_FAMILIES, 7)):
            level = 1 + (at > 90 + 8 * place)
            answered = dice.choice((8, 16, 24))
            found[family] = (level, sum(dice.random() < share for _ in range(answered)), answered)
        row = Round(
            round=at,
            run=1,
            at=when,
            seconds=3.1 + dice.random(),
            informative_own=dice.randint(9, 15),
            train_solved=share + dice.gauss(0, 0.04),
            families=found,
            tokens=4428,
            sample_s=2.0,
        )
        rows.append(row)
    fold.recall(
        history.History(
            curve=rising(rounds),
            rounds=tuple(rows),
            groups=groups(rounds),
            runs=(
                Run(
                    run=1,
                    started=NOW - rounds * 4,
                    ended=None,
                    first_round=1,
                    last_round=rounds or None,
                    outcome=None,
                    engine="torch CPU",
                ),
            ),
            happenings=(
                LogEntry(at=NOW - rounds * 4, round=0, kind="note", sentence="A new adapter was begun."),
                LogEntry(
                    at=NOW - 260,
                    round=rounds // 2,
                    kind="trainer_restarted",
                    sentence="The system ended the trainer, most likely because memory ran short. "
                    "It restarts and plays round 81 again.",
                ),
            ),
        )
    )
    fold.tick(NOW)
    fold.change(
        state=NodeStatus.LEARNING,
        model="starter",
        recipe="default",
        rules=DEFAULTS,
        ruling=ruling(Reason.RUNNING),
        engine=ENGINE,
        round=rounds + 1,
        step=Step.SAMPLING,
        done=76,
        total=128,
        left_s=1.4,
        step_since=NOW - 1,
        safe_at=NOW - 3,
    )
    fold.change(**fields)
    return fold.view


def group(
    round: int, at: float, family: str, answers: list[tuple[str, bool]], level: int = 1, **more: object
) -> GroupRow:
    return GroupRow(
        round=round,
        at=at,
        coordinates=Coordinates(family=family, level=level, seed=1, index=0),
        completions_G=tuple(text for text, _ in answers),
        rewards_G=tuple(int(solved) for _, solved in answers),
        finished_G=(True,) * len(answers),
        scores_G=tuple(float(solved) for _, solved in answers),
        **more,
    )


def groups(last: int, count: int = 60, peers: bool = False) -> tuple[GroupRow, ...]:
    dice = random.Random(3)
    made = []
    for at in range(count):
        family = dice.choice(list(QUESTIONS))
        question, right, wrong = QUESTIONS[family]
        solved = [dice.random() < 0.55 for _ in range(8)]
        peer = node_name(bytes([at % 7]) * 32) if peers and at % 3 == 1 else None
        answers = [(right if ok else wrong, ok) for ok in solved]
        made.append(group(max(1, last - at // 6), NOW - at, family, answers, question=question, peer=peer))
    return tuple(made)


def swarm(peers: int = 14, **fields: object) -> SwarmView:
    dice = random.Random(5)
    rows = tuple(
        Peer(
            name=node_name(at.to_bytes(32)),
            model=dice.choice(("starter", "starter", "Qwen2.5-0.5B-Instruct", "SmolLM2-135M")),
            seen_at=NOW - dice.random() ** 3 * 4000,
            groups=int(dice.random() ** 2 * 80),
        )
        for at in range(peers)
    )
    made = SwarmView(
        name="brisk-otter-0417",
        connected=True,
        relay="wss://shoal.example.org",
        sentence="Groups come and go as they should.",
        invite="shoal://join/shoal.example.org/reef?relay=reef-1",
        online=max(0, peers - 2),
        given=418,
        given_ever=418,
        waiting=2,
        taken=391,
        received=460,
        refused={"too old": 41, "not informative": 28},
        bytes_per_hour=1_840_000,
        received_per_hour=2_310_000,
        relay_name="shoal.example.org",
        peers=rows,
        messages=tuple(
            LoggedMessage(
                at=NOW - 30 * (6 - at),
                outgoing=at % 2 == 0,
                kind="pub" if at % 2 == 0 else "batch",
                size=1240 + 37 * at,
                text='{"t":"pub","body":{"family":"gcd","level":1,"seed":90071992547,"index":0,'
                '"answers":["36 24 12 0 #12","24 12 0 #24"]}}',
            )
            for at in range(6)
        ),
    )
    return msgspec.structs.replace(made, **fields)


def together(peers: int = 14) -> View:
    return learning(solo=False, swarm=swarm(peers), groups=groups(160, peers=True))


def ruling(reason: Reason, **values: str) -> Ruling:
    return Ruling(
        run=reason in (Reason.RUNNING, Reason.FINISHING, Reason.ANYWAY),
        reason=reason.value,
        sentence=reason.sentence.format_map(values),
        short=reason.short.format_map(values),
        values=values,
        dial="balanced",
        effort=EFFORTS[Dial.BALANCED],
        watts=14.0,
    )


def in_use() -> Ruling:
    made = ruling(Reason.IN_USE, have="2:13", need="3:00")
    return msgspec.structs.replace(made, idle_s=133.0, idle_need_s=180.0)


def failed() -> View:
    problem = Problem(
        title="Learning stopped",
        sentence="The disk that holds /home/ada/.local/share/shoal is full.",
        remedy="Make some room or choose another folder, and start again.",
    )
    return learning(ruling=None, state=NodeStatus.FAILED, problem=problem, reason=problem.sentence, step=None)


DOOR = ServedDoor(url="http://127.0.0.1:11777/v1", token="sk-shoal-an-example", model="starter")


@cache
def holdings(chosen: str = "starter", **fields: object) -> Holdings:
    """A library on a computer with 16 GB: two models here, one under way, one cut short, one with a licence."""
    memory = MemoryRoom(free=9_400_000_000, most=12_100_000_000)
    models = [
        ModelEntry(
            name="starter",
            title="Starter",
            about=STARTER_ABOUT,
            installed=True,
            bytes=6_744_257,
            licence="Apache-2.0",
            learning=148_000_000,
            fit=Fit(verdict=FitVerdict.FITS, sentence=""),
            training=Training(
                folder="/home/ada/.local/share/shoal/models/starter-1",
                bytes=14_200_000,
                rounds=160,
                best=120,
            ),
            recommended=True,
        )
    ]
    for entry in entries():
        need = needs(entry.shape, "float32", stored_parameters=entry.stored_parameters, disk=entry.bytes)
        models.append(
            ModelEntry(
                name=entry.id,
                title=entry.title,
                about=entry.about,
                installed="135M" in entry.id,
                folder="/home/ada/hub" if "135M" in entry.id else "",
                bytes=entry.bytes,
                licence=entry.licence,
                gated=entry.gated,
                learning=need.learning,
                fit=assess_fit(need, memory, 41_000_000_000),
                partial=PartialDownload(
                    id=entry.id,
                    have=312_000_000,
                    total=entry.bytes,
                    sentence="huggingface.co can't be reached: check the network and try again.",
                    running=False,
                )
                if "360M" in entry.id
                else None,
                training=Training(
                    folder="/home/ada/.local/share/shoal/models/smol-1",
                    bytes=20_000_000,
                    rounds=40,
                    round_s=9.4,
                    begins=("chain_sum", "gcd"),
                    waiting=("lcm",),
                )
                if "135M" in entry.id
                else None,
                round_s=9.4 if "135M" in entry.id else 40.0,
            )
        )
    orphan = Training(folder="/home/ada/.local/share/shoal/models/x-2", bytes=31_000_000, rounds=44)
    library = Library(
        models=tuple(models),
        orphans=(orphan,),
        disk_free=41_000_000_000,
        hub_bytes=584_000_000,
        training_bytes=45_200_000,
        memory=memory,
        dtype="float32",
    )
    made = Holdings(
        chosen=chosen,
        library=library,
        fetch=Fetch(
            name="Qwen/Qwen2.5-0.5B-Instruct",
            have=431_000_000,
            total=995_197_824,
            per_second=4_200_000.0,
            left_s=134.0,
        ),
        queue=("Qwen/Qwen3-0.6B",),
    )
    return msgspec.structs.replace(made, **fields)


def crammed() -> Holdings:
    """No memory, no disk, names that nobody would choose, and one of every kind of trouble."""
    long = "an-extraordinarily-long-name-that-nobody-would-choose-" * 4
    made = holdings()
    library = made.library
    assert library is not None
    small = MemoryRoom(free=100_000_000, most=1_400_000_000)
    models = []
    for at, model in enumerate(library.models):
        verdict = list(FitVerdict)[at % len(FitVerdict)]
        models.append(
            msgspec.structs.replace(
                model,
                title=model.title if at % 2 else long,
                about=long.replace("-", " ") if at % 3 == 0 else model.about,
                licence=long,
                fit=Fit(verdict=verdict, sentence=""),
            )
        )
    own = ModelEntry(
        name=f"/home/{long}", title=long, installed=True, local=True, folder=f"/home/{long}", bytes=10**12
    )
    library = msgspec.structs.replace(library, models=(*models, own), memory=small, disk_free=0)
    failed = {model.name: long for model in library.models[3:5]}
    return msgspec.structs.replace(
        made, library=library, fetch=None, queue=(), failed=failed, problem=long, said=long
    )


@cache
def odd() -> dict[str, View]:
    """Everything a page must bear."""
    long = "an-extraordinarily-long-name-that-nobody-would-choose-" * 4
    peers = (Peer(name=long, model=long, seen_at=NOW + 9999, groups=10**9),)
    strange = group(1, 0, "no_such_family", [], level=99, question="x" * 4000, peer=long)
    hostile = group(
        1,
        0,
        "no_such_family",
        [("<img src=x><b>bold</b>\u202egnp.exe\x1b[2J" * 50, False)] * 40,
        level=99,
        question="x" * 4000,
        peer=long,
    )
    return {
        "new": View(home="/tmp/shoal"),
        "models": learning(models=holdings()),
        "no models": learning(models=Holdings(chosen="starter", problem="The list of models cannot be read.")),
        "crammed": learning(models=crammed()),
        "at rest": learning(
            state=NodeStatus.PAUSED, step=None, ruling=None, reason="Shoal waits until you start it."
        ),
        "starting": View(state=NodeStatus.STARTING, home="/tmp/shoal"),
        "placing": learning(0, curve=(), step=Step.PLACING, round=1, done=7, total=27),
        "first": learning(0, curve=rising(0)),
        "full": learning(),
        "together": together(),
        "nobody": learning(solo=False, swarm=SwarmView()),
        "crowd": together(5000),
        "failed": failed(),
        "paused": learning(state=NodeStatus.PAUSED, step=None, ruling=ruling(Reason.PAUSED)),
        "snoozed": learning(
            state=NodeStatus.PAUSED, step=None, ruling=ruling(Reason.SNOOZED, until="Sat 22:00")
        ),
        "in use": learning(state=NodeStatus.WAITING, step=None, ruling=in_use()),
        "finishing": learning(ruling=ruling(Reason.FINISHING)),
        "trial": learning(ruling=ruling(Reason.ANYWAY, until="14:10")),
        "busy": learning(0, state=NodeStatus.WAITING, step=None, ruling=ruling(Reason.CPU, percent="51")),
        "unknown reason": learning(
            state=NodeStatus.WAITING,
            step=None,
            ruling=msgspec.structs.replace(ruling(Reason.HOT), reason="new"),
        ),
        "waiting": learning(
            state=NodeStatus.WAITING,
            step=None,
            ruling=None,
            reason="Learning crashed",
            until=NOW + 16,
        ),
        "clock set back": learning(safe_at=NOW + 10**6, step_since=NOW + 10**6),
        "long names": learning(
            model=long,
            recipe=long,
            news=long,
            solo=False,
            swarm=msgspec.structs.replace(
                swarm(0, name=long, relay=long, sentence=long, invite=long), peers=peers
            ),
            groups=(strange, hostile),
        ),
        "many points": learning(curve=tuple(Probe(round=at, share=0.5, stderr=0.03) for at in range(20_000))),
        "all families": msgspec.structs.replace(learning(), families=tuple(learning().families) * 4),
        "many rounds": msgspec.structs.replace(
            learning(),
            rounds=tuple(
                Round(
                    round=at,
                    run=1,
                    at=NOW - 20_000 + at,
                    seconds=1.0,
                    informative_own=9,
                    peers={"calm-cod-0001": 3},
                    train_solved=0.4,
                    families={"gcd": (0, 4, 10)},
                )
                for at in range(20_000)
            ),
        ),
    }


def recorded(home: Path) -> View:
    """What a finished run left behind."""
    fold = Fold(View(home="~/.local/share/shoal", state=NodeStatus.PAUSED, model="starter", recipe="default"))
    fold.recall(history.read(history.newest(home)))
    fold.tick(NOW)
    return fold.view


def conversation(page: TryIt) -> None:
    """A puzzle, solved by both and by a person, and a question of one's own, as if a model had answered."""
    for number, text, drawn, before, after in (
        (
            1,
            "State the final answer to the following arithmetic problem: 7 - 9 + 9 + 5 =",
            messages.PuzzleDrawn(
                number=1, puzzle=1, family="chain_sum", title="Sums", level=1, levels=5, text="", unseen=True
            ),
            ("7-9=-2 -2+9=8 #8", False),
            ("7-9=-2 -2+9=7 7+5=12 #12", True),
        ),
        (2, "What is 4 + 3?", None, ("46+3=7 76+3=90 #9", None), ("4+3=7 #7", None)),
    ):
        exchange = page._exchange(text, drawn)
        exchange.show_waiting(("before", "after"))
        for side, (answer, solved) in (("before", before), ("after", after)):
            exchange.say(
                messages.Said(
                    number=number,
                    side=side,  # type: ignore[arg-type]
                    text=answer,
                    finished=True,
                    tokens=len(answer),
                    seconds=0.2,
                    solved=solved,
                    learned=160 if side == "after" else None,
                )
            )
        if drawn is not None:
            exchange.show_own_answer("12", True)
            exchange.solution("12")
        exchange.done("")


WORDS = (
    "abandon amount liar amount expire adjust cage candy arch gather drum bullet absurd math era live bid "
    "rhythm alien crouch range attend journey unaware"
)
"""Of the key 00 01 02 … 1f, which everybody knows."""


def personas() -> dict[str, Persona]:
    """The owner's name in every state of Settings."""
    file = "/media/Jörg Müller/an external disk/with long names of folders/shoal/key-03a107bff3ce10be.secret"
    there = Persona(name="humble-gecko-6607", kept="keyring", asked=True)
    change = msgspec.structs.replace
    damaged = (
        f"The key of humble-gecko-6607 is damaged, and its file is kept as damaged-{file[-27:]}-1f3a: enter "
        "the recovery words of humble-gecko-6607 (./shoal identity restore)."
    )
    return {
        "unasked": Persona(),
        "none": Persona(asked=True),
        "keyring": there,
        "words": there,
        "passphrase": change(there, kept="file", file=file.replace("secret", "sealed")),
        "plain": change(there, kept="plain", file=file),
        "busy": change(there, busy=True),
        "failed": change(there, kept="plain", file=file, failed=damaged),
    }
