"""A result: what is signed, what is believed, and the commands that repeat it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.cli import result as cli
from app.cli import run
from app.models.shelf import locate
from app.node.data.home import model_folder, model_mark
from app.node.history import checkpoint
from app.node.history.history import FILE
from app.node.history.store import Store
from app.node.models import result, result_making, trained
from app.node.models.result import OWNERS_SETS, Result, ResultError
from app.node.record.records import Probe, Round
from app.node.record.settings import Settings
from app.node.record.state import NodeState
from app.sapo import curriculum
from app.swarm.identity.identity import Identity
from engines.contract import EngineInfo

STARTER = locate("starter")
ME = Identity(bytes(range(32)))
SET = "own-0123456789ab"
ENGINE = EngineInfo(
    name="torch", device="CPU", dtype="fp32", model="starter", parameters=1_600_000, trainable=1, threads=2,
    memory_budget_mb=500,
)  # fmt: skip


def settings(*words: str) -> Settings:
    """Those of `./shoal run --solo` with these options."""
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    args = parser.parse_args(["--solo", *words])
    return run._settings(args, STARTER, None)


def learned(home: Path, *runs: tuple[Settings, int], own: bool = False, peers: int = 0) -> Result:
    """What is read back from a data folder in which so many rounds were played with these settings."""
    mark, last = model_mark(STARTER), sum(rounds for _, rounds in runs)
    folder = model_folder(home, "starter", mark)
    store, at = Store(folder / FILE), 0
    for one, rounds in runs:
        if own:
            one = msgspec.structs.replace(one, families={SET: 0})
        number = store.begin_run(at + 1, one, ENGINE)
        for _ in range(rounds):
            at += 1
            row = Round(
                round=at, run=number, at=1.0, seconds=2.0, informative_own=9, train_solved=0.2,
                peers={"brisk-otter-0417": peers} if peers else {},
            )  # fmt: skip
            store.add_round(row, [])
    for round_, share in ((0, 0.2), (last, 0.5)):
        families = {SET: share} if own else {"gcd": share}
        row_ = Probe(
            round=round_, questions_mark="0a1b2c3d", at=1.0, questions=100, share=share, stderr=0.04,
            families=families,
        )  # fmt: skip
        store.add_probe(row_)
    store.close()
    unfinished = checkpoint.begin(folder / "checkpoints", last)
    (unfinished / "adapter_model.safetensors").write_bytes(b"weights")
    state = NodeState(
        round=last, curriculum=curriculum.start({"gcd": 1}), identity="abc", completions=128 * last
    )
    checkpoint.seal(unfinished, mark, msgspec.structs.replace(state, questions=result.QUESTIONS_VERSION))
    checkpoint.publish(unfinished, folder / "checkpoints", last)
    return result_making.make_result(trained.newest(home, STARTER, home / "copy"), STARTER)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return learned(tmp_path_factory.mktemp("made"), (settings("--seed", "7"), 4))


def changed(of: Result, **fields: Any) -> Result:
    return msgspec.structs.replace(of, **fields)


def test_a_result_says_what_was_done_and_how_to_repeat_it(made: Result) -> None:
    assert (made.rounds, made.seeds, made.base.name, made.from_peers) == (4, (7,), "starter", 0)
    assert [point.pass_at_1 for point in made.curve] == [0.2, 0.5] and made.last.interval == (0.4216, 0.5784)
    assert made.base.sha256 == result_making.weights_digest(STARTER)
    assert made.repeat == (
        "./shoal run --solo --model starter --rounds 4 --seed 7 --engine torch --local 16 "
        "--probe-questions 256 --home NEW",
        "./shoal result --home NEW",
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--seed", "3"),
        ("--recipe", "faithful", "--local", "5", "--families", "gcd,lcm", "--probe-every", "4"),
        ("--shuffled-rewards", "--probe-questions", "32", "--engine", "torch"),
    ],
)
def test_its_options_lead_to_the_same_settings(words: tuple[str, ...], tmp_path: Path) -> None:
    one = learned(tmp_path, (settings(*words), 3)).played[0]
    again = settings(*result.options_to_repeat(one, "starter", one.seed)[1:])
    assert again == msgspec.structs.replace(settings(*words), rounds=3, engine="torch")


def test_runs_that_go_on_alike_are_one_and_others_are_not(tmp_path: Path) -> None:
    first, other = settings("--seed", "1", "--rounds", "2"), settings("--seed", "2")
    made = learned(tmp_path, (first, 2), (settings("--seed", "1"), 3), (other, 1))
    assert [(one.seed, one.first_round, one.last_round) for one in made.played] == [(1, 1, 5), (2, 6, 6)]
    assert [words.split("--rounds ")[1][:1] for words in made.repeat[:2]] == ["5", "1"]


def test_nothing_of_the_owners_is_in_it(tmp_path: Path) -> None:
    made = learned(tmp_path, (settings(), 2), own=True)
    content = result.sign(made, ME)
    for private in (SET, str(tmp_path), os.uname().nodename if hasattr(os, "uname") else "\0"):
        assert private not in content.decode()
    assert set(made.families) == {OWNERS_SETS} and made.repeat == ()
    assert "questions of its owner's" in result.why_not_repeatable(made)


def test_what_verify_says(made: Result) -> None:
    found = result.verify(result.sign(made, ME))
    said = "\n".join(cli._said(found, ME.key.hex()))
    assert f"{ME.name}, that is this node, wrote this" in said and "Solves 50 of 100 new puzzles, 20" in said
    assert "42.2 to 57.8 %" in said and made.base.sha256 in said
    assert said.endswith("\n".join(f"  {words}" for words in made.repeat))
    recipe = msgspec.structs.replace(made.played[0], recipe="x; rm -rf ~ \x1b[2J")
    hostile = changed(made, skill="Mails\x1b[2J", day="\x1b[2J", played=(recipe,), repeat=("rm -rf /",))
    said = "\n".join(cli._said(result.verify(result.sign(hostile, ME)), ""))
    assert "\x1b" not in said and "'x; rm -rf ~ " in said and "rm -rf /" not in said, "copied, it is one word"


def test_a_skills_result_names_it_and_what_one_constant_answer_gets(made: Result) -> None:
    skill = result.verify(result.sign(changed(made, skill="Mails", constant=0.375), ME)).result
    assert cli.summary(skill).startswith("Mails: right in 50 of 100 new rows, 20 at round 0. One constant")
    assert cli.summary(skill).endswith(" gets 38.")
    assert b'"skill"' not in result.sign(made, ME), "so that an older Shoal reads what puzzles brought"


def test_a_file_of_an_earlier_version_is_read(made: Result) -> None:
    body = msgspec.to_builtins(made) | {"flips": {"first": 0, "latest": 4, "gained": 30}}
    assert result.verify(signed(msgspec.json.encode(body))).result.rounds == 4


def test_a_signature_holds_the_file_to_the_last_byte(made: Result) -> None:
    content = result.sign(made, ME)
    assert result.verify(content).name == ME.name and result.verify(content).result == made
    for place in range(0, len(content), 5):
        spoiled = bytearray(content)
        spoiled[place] ^= 1
        with pytest.raises(ResultError):
            result.verify(bytes(spoiled))
    other = msgspec.json.decode(content)
    other["key"] = Identity.new().key.hex()
    with pytest.raises(ResultError, match="The signature doesn't fit"):
        result.verify(msgspec.json.encode(other))


def test_a_key_that_signs_everything_signs_no_result(made: Result) -> None:
    """A point of small order, under which one signature fits every file in OpenSSL."""
    small = b"\1" + bytes(31)
    forged = msgspec.json.decode(result.sign(made, ME)) | {
        "key": small.hex(),
        "signature": (small + bytes(32)).hex(),
    }
    Ed25519PublicKey.from_public_bytes(small).verify(small + bytes(32), b"whatever")
    with pytest.raises(ResultError, match="The signature doesn't fit"):
        result.verify(msgspec.json.encode(forged))


def signed(body: bytes) -> bytes:
    signature = ME.sign(result._DOMAIN + body).hex()
    return b'{"key":"%s","signature":"%s","result":%s}' % (ME.key.hex().encode(), signature.encode(), body)


HOSTILE: dict[str, Callable[[dict[str, Any]], object]] = {
    "a share above one": lambda one: one["curve"][0].update(pass_at_1=2),
    "a huge number": lambda one: one.update(rounds=10**30),
    "a field more": lambda one: one.update(run="rm -rf ~"),
    "a field less": lambda one: one.pop("base"),
    "no measurement": lambda one: one.update(curve=[]),
    "rounds that end before they begin": lambda one: one["played"][0].update(last_round=0),
    "a million puzzles a round": lambda one: one["played"][0].update(groups=10**6),
    "a text that never ends": lambda one: one.update(shoal="x" * 10**6),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_well_signed_may_be_nonsense(made: Result, name: str) -> None:
    body = msgspec.to_builtins(made)
    HOSTILE[name](body)
    with pytest.raises(ResultError, match="The signature fits, but") as refused:
        result.verify(signed(msgspec.json.encode(body)))
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[" * 10**5, b"\xff\xfe", b"null", signed(b"[" * 500 + b"]" * 500), signed(b"NaN")]
)
def test_what_is_no_result_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ResultError) as refused:
        result.read(tmp_path / "file")
    assert "\n" not in str(refused.value) and str(refused.value).endswith(".")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
def test_a_place_that_never_ends_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b" " * (result.MAX_FILE_BYTES + 1))
    for place in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "gone", tmp_path / "large"):
        with pytest.raises(ResultError):
            result.read(place)


def test_what_cannot_be_played_again_says_why(made: Result, tmp_path: Path) -> None:
    assert result.why_not_repeatable(made) == ""
    with_peers = learned(tmp_path, (settings(), 2), peers=2)
    assert with_peers.from_peers == 4 and "other models' answers" in result.why_not_repeatable(with_peers)
    assert "puzzles of version" in result.why_not_repeatable(changed(made, questions="0.0.1/1"))
