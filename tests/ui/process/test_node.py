"""The node's process, with small programs in its place; real ones are in tests/ui/screen and tests/e2e."""

from __future__ import annotations

import json
import shutil
import stat
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from pytestqt.qtbot import QtBot

from app.models.shelf import starter_folder
from app.node.data.library import history_of
from app.node.history import history
from app.node.history.history import History
from app.node.record import commands
from app.node.record.reasons import Reason
from app.node.record.records import Run
from app.node.rules.preferences import PreferenceError, Preferences
from app.swarm.invite.private import new_words
from app.ui.process.control import INSIST_S, Control
from app.ui.process.node import NODE, NodeProcess, problem
from app.ui.view.settings import FILE, Choices
from app.ui.view.view import NodeStatus, Problem, Step
from tests.e2e.relay import Relay
from tests.node.ruled import CALM
from tests.ui import views

PATIENCE_MS = 240_000
START = (
    '{"event":"start","model":"m","engine":{"name":"e","device":"CPU","dtype":"f","model":"m","parameters":1,'
    '"trainable":1,"threads":1,"memory_budget_mb":1},"home":"","round":0,"recipe":"default","families":{"gcd":0}}'
)
PROBE = '{"event":"probe","round":0,"pass_at_1":0.5,"stderr":0.1,"families":{"gcd":0.5},"questions":4}'
WAIT = "            while not pathlib.Path({!r}).exists(): time.sleep(0.05)\n"
LEAVE = '{"command": "leave"}'
GOOD = f"""
import sys
print('''{START}''', flush=True)
print('''{PROBE}''', flush=True)
import pathlib
with open(pathlib.Path(__file__).parent / "heard", "a") as file:
    for line in sys.stdin:
        print(line, end="", file=file, flush=True)
        if '"leave"' in line:
            break
print('{{"event":"end","round":0,"reason":"stopped","sentence":"Done."}}', flush=True)
"""


@pytest.fixture
def make(tmp_path: Path, qtbot: QtBot) -> Iterator[Callable[[str], NodeProcess]]:
    made: list[NodeProcess] = []

    def link(program: str) -> NodeProcess:
        file = tmp_path / f"node{len(made)}.py"
        file.write_text(textwrap.dedent(program))
        made.append(NodeProcess(tmp_path, [str(file)], sys.executable))
        return made[-1]

    yield link
    for one in made:
        one.stop_and_wait()


def test_lines_come_and_a_closed_pipe_ends_it(make: Callable[[str], NodeProcess], qtbot: QtBot) -> None:
    link = make(GOOD)
    lines: list[bytes] = []
    link.line.connect(lines.append)
    link.start([])
    qtbot.waitUntil(lambda: len(lines) == 2, timeout=PATIENCE_MS)
    with qtbot.waitSignal(link.stopped, timeout=PATIENCE_MS):
        link.stop()
    assert not link.running and lines[-1].startswith(b'{"event":"end"')


def test_a_crash_is_told_and_the_node_started_again(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot
) -> None:
    link = make(f"""
        import os, pathlib
        seen = pathlib.Path({str(tmp_path / "seen")!r})
        if not seen.exists():
            seen.touch()
            os.kill(os.getpid(), 9)
        {GOOD.replace(chr(10), chr(10) + "        ")}
    """)
    lines: list[bytes] = []
    link.line.connect(lines.append)
    with qtbot.waitSignal(link.again, timeout=PATIENCE_MS) as told:
        link.start([])
    assert "last save is safe" in told.args[0] and told.args[1] == 1.0
    qtbot.waitUntil(lambda: len(lines) == 2, timeout=PATIENCE_MS)


def test_a_refusal_after_the_start_is_final_and_has_a_remedy(
    make: Callable[[str], NodeProcess], qtbot: QtBot
) -> None:
    link = make(f"""
        import sys
        print('''{START}''', flush=True)
        print("shoal: The disk that holds /x is full: make some room or choose another --home", file=sys.stderr)
        sys.exit(1)
    """)
    with qtbot.waitSignal(link.failed, timeout=PATIENCE_MS) as told:
        link.start([])
    found = told.args[0]
    assert isinstance(found, Problem)
    assert found.sentence == "The disk that holds /x is full."
    assert found.remedy == "Make some room or choose another --home."


def test_what_cannot_be_started_is_a_problem(tmp_path: Path, qtbot: QtBot) -> None:
    link = NodeProcess(tmp_path, [], str(tmp_path / "nothing"))
    with qtbot.waitSignal(link.failed, timeout=PATIENCE_MS) as told:
        link.start([])
    assert "setup" in told.args[0].remedy and not link.running


def test_every_problem_has_three_parts() -> None:
    for sentence in ("", "One thing", "One thing: do that", "One thing; do that."):
        found = problem(sentence)
        assert found.title and found.sentence.endswith(".") and found.remedy.endswith(".")


def test_other_options_take_the_place_of_the_node_that_runs(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot
) -> None:
    link = make(
        f"import sys, pathlib\npathlib.Path({str(tmp_path / 'options')!r}).write_text(' "
        f"'.join(sys.argv[1:]))\n{GOOD}"
    )
    link.start(["--solo"])
    qtbot.waitUntil(
        lambda: (tmp_path / "options").exists() and "--solo" in (tmp_path / "options").read_text(),
        timeout=PATIENCE_MS,
    )
    first = link.pid
    link.start(["--relay", "ws://r"])
    qtbot.waitUntil(
        lambda: link.running and link.pid not in (0, first) and "ws://r" in (tmp_path / "options").read_text(),
        timeout=PATIENCE_MS,
    )


def test_a_paused_shoal_that_opens_again_says_which_model_it_has_and_that_the_other_is_safe(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot
) -> None:
    """It showed zeros and an empty curve without a name: 77 rounds of another model looked lost."""
    own = tmp_path / "own"
    shutil.copytree(starter_folder(), own)
    past = history_of(tmp_path, "starter")
    assert past is not None
    (past / "checkpoints" / "round-000077").mkdir(parents=True)
    choices = Choices(tmp_path)
    choices.put("model", str(own))
    choices.remember_window(asked=True, willing=False)
    control = Control(tmp_path, choices, make(GOOD))
    assert control.view.model == str(own)
    control.open()
    qtbot.waitUntil(lambda: "up to round 77 is safe" in control.view.news, timeout=PATIENCE_MS)
    control.close()


def test_another_swarm_waits_for_the_round_in_flight_and_another_model_does_not(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot
) -> None:
    round_ = tmp_path / "round is over"
    patient = GOOD.replace("            break", f"{WAIT.format(str(round_))}            break")
    link = make(patient.replace("import sys", "import sys, time", 1))
    control = Control(tmp_path, Choices(tmp_path), link)
    control.learn("alone")
    qtbot.waitUntil(lambda: len(control.view.curve) == 1, timeout=PATIENCE_MS)
    first = link.pid
    control.join("ws://r")
    control.insist()
    qtbot.waitUntil(lambda: LEAVE in spoken(tmp_path), timeout=PATIENCE_MS)
    assert link.pid == first and control.view.state is NodeStatus.LEARNING and not control.view.solo
    round_.touch()
    qtbot.waitUntil(lambda: len(spoken(tmp_path)) == 6, timeout=PATIENCE_MS)
    orders = [json.dumps({"command": "resume"}), json.dumps({"command": "insist", "seconds": INSIST_S})]
    assert spoken(tmp_path) == [*orders, LEAVE, "ws://r", *orders] and link.pid != first
    second = link.pid
    control._choices.put("recipe", "faithful")
    control.start()
    qtbot.waitUntil(lambda: link.running and link.pid not in (0, second), timeout=PATIENCE_MS)
    assert spoken(tmp_path).count(LEAVE) == 1
    control.close()


@pytest.mark.long
def test_joining_and_leaving_cost_the_real_node_no_round(tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "facts").write_text(msgspec.json.encode(CALM).decode())
    relay = Relay(tmp_path / "relay")
    home = tmp_path / "home"
    link = NodeProcess(home, [*NODE, "--facts", str(tmp_path / "facts")])
    control = Control(home, Choices(home), link)
    begun: list[int] = []
    """The rounds in flight when the swarm was changed."""

    def answers() -> bool:
        view = control.view
        later = view.round > max(begun, default=0)
        return view.state is NodeStatus.LEARNING and view.step is Step.SAMPLING and later

    def changes(swarm: Callable[[], None], connected: bool) -> None:
        qtbot.waitUntil(answers, timeout=2 * PATIENCE_MS)
        begun.append(control.view.round)
        before = link.pid
        swarm()
        qtbot.waitUntil(lambda: link.pid not in (0, before), timeout=2 * PATIENCE_MS)
        if connected:
            qtbot.waitUntil(lambda: control.view.swarm.connected, timeout=2 * PATIENCE_MS)

    try:
        control.learn("alone")
        changes(lambda: control.join(relay.url), connected=True)
        changes(control.leave, connected=False)
        qtbot.waitUntil(answers, timeout=2 * PATIENCE_MS)
        assert control.view.solo and control.view.swarm is None
    finally:
        control.close()
        relay.kill()
    past = history.read(history.newest(home))
    played = {row.round: row.run for row in past.rounds}
    assert list(played) == list(range(1, len(played) + 1))
    runs = [run.run for run in past.runs]
    assert [played[number] for number in begun] == runs[:2], "who began a round finished it"


@pytest.fixture
def control(make: Callable[[str], NodeProcess], tmp_path: Path) -> Iterator[Control]:
    made = Control(tmp_path, Choices(tmp_path), make(GOOD))
    yield made
    made.close()


def test_what_is_ordered_reaches_the_node_and_its_process_stays(
    control: Control, tmp_path: Path, qtbot: QtBot
) -> None:
    assert control.view.state is NodeStatus.NEW
    control.learn("alone")
    qtbot.waitUntil(lambda: len(control.view.curve) == 1, timeout=PATIENCE_MS)
    assert control.view.state is NodeStatus.LEARNING and control.view.solo
    control.pause()
    control.snooze(3600.0)
    control.snooze(None)
    control.finish()
    control.set_rule("dial", "quiet")
    wanted = [
        dict(command="resume"),
        dict(command="insist", seconds=INSIST_S),
        dict(command="pause"),
        dict(command="snooze", seconds=3600.0),
        dict(command="snooze", tomorrow=True),
        dict(command="finish"),
        dict(command="settings", changed=dict(dial="quiet")),
    ]
    qtbot.waitUntil(lambda: heard(tmp_path) == wanted, timeout=PATIENCE_MS)
    for line in (tmp_path / "heard").read_bytes().splitlines():
        commands.decode(line)  # the real node understands every one of them
    assert control._link.running and control.view.rules["dial"] == "quiet"
    with pytest.raises(PreferenceError):
        control.set_rule("dial", "loud")


def test_who_leaves_the_swarm_is_alone_whatever_the_node_before_still_says(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot
) -> None:
    swarm = (
        '{"event":"snapshot","snapshot":{"model":"m","recipe":"default","home":"","solo":false,"started_at":0,'
        '"swarm":{"name":"brisk-otter-0417"}}}'
    )
    joined = GOOD.replace(f"print('''{PROBE}'''", f"if '--solo' not in sys.argv: print('''{swarm}'''")
    link = make(joined + f"\nif '--solo' not in sys.argv: print('''{swarm}''', flush=True)\n")
    control = Control(tmp_path, Choices(tmp_path), link)
    control.learn("others")
    qtbot.waitUntil(lambda: bool(control.view.swarm and control.view.swarm.name), timeout=PATIENCE_MS)
    before = link.pid
    control.leave()
    qtbot.waitUntil(lambda: link.pid not in (0, before), timeout=PATIENCE_MS)
    qtbot.waitUntil(lambda: control.view.state is NodeStatus.LEARNING, timeout=PATIENCE_MS)
    assert control.view.solo and control.view.swarm is None
    assert [one["command"] for one in heard(tmp_path)] == ["resume", "insist", "leave"], (
        "no pause: it would last"
    )
    control.close()
    control.leave()
    assert control.view.swarm is None and not link.running


def heard(folder: Path) -> list[object]:
    return [json.loads(line) for line in spoken(folder)]


def spoken(folder: Path) -> list[str]:
    file = folder / "heard"
    return file.read_text().splitlines() if file.exists() else []


def test_the_very_first_start_insists_and_later_ones_do_not(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot
) -> None:
    first = Control(tmp_path, Choices(tmp_path), make(GOOD))
    first.learn("alone")
    qtbot.waitUntil(lambda: len(heard(tmp_path)) == 2, timeout=PATIENCE_MS)
    assert heard(tmp_path) == [{"command": "resume"}, {"command": "insist", "seconds": INSIST_S}]
    first.close()
    (tmp_path / "heard").unlink()
    later = Control(tmp_path, Choices(tmp_path), make(GOOD))
    later.learn("alone")
    qtbot.waitUntil(lambda: bool(heard(tmp_path)), timeout=PATIENCE_MS)
    later.insist()
    qtbot.waitUntil(lambda: len(heard(tmp_path)) == 2, timeout=PATIENCE_MS)
    assert [one["command"] for one in heard(tmp_path)] == ["resume", "insist"]
    later.close()


@pytest.mark.parametrize(("share", "told"), [("0.0", 3), ("0.5", 2)])
def test_it_insists_until_there_is_a_point_above_zero(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot, share: str, told: int
) -> None:
    control = Control(
        tmp_path, Choices(tmp_path), make(GOOD.replace('"pass_at_1":0.5', f'"pass_at_1":{share}'))
    )
    control.learn("alone")
    qtbot.waitUntil(lambda: len(heard(tmp_path)) == 2 and bool(control.view.curve), timeout=PATIENCE_MS)
    for _ in range(15):
        control._new_minute()
    control.skip()
    qtbot.waitUntil(lambda: heard(tmp_path)[-1]["command"] == "skip", timeout=PATIENCE_MS)
    orders = [one["command"] for one in heard(tmp_path)]
    assert orders == ["resume", *["insist"] * (told - 1), "skip"]
    control.pause()
    for _ in range(15):
        control._new_minute()
    control.close()
    assert [one["command"] for one in heard(tmp_path)][len(orders) :] == ["pause"], "a pause ends it"


def tell_the_next(qtbot: QtBot, control: Control) -> None:
    """Gives a node an order once it has taken the place of one that leaves."""
    link = control._link
    qtbot.waitUntil(lambda: link.running and not (link._leaving or link._later), timeout=PATIENCE_MS)
    control.skip()


@pytest.mark.parametrize("order", [Reason.PAUSED, Reason.SNOOZED, Reason.CLASS, Reason.OUTSIDE_HOURS, None])
def test_another_model_insists_but_ends_nobody_s_pause(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot, order: Reason | None
) -> None:
    Choices(tmp_path).remember_window(asked=True, willing=True)
    control = Control(tmp_path, Choices(tmp_path), make(GOOD))
    control.learn("alone")
    qtbot.waitUntil(lambda: bool(control.view.curve), timeout=PATIENCE_MS)
    if order is not None:
        control._change(state=NodeStatus.WAITING, ruling=views.ruling(order, until="05:00"))
    control.on_model_changed()
    tell_the_next(qtbot, control)
    qtbot.waitUntil(lambda: {"command": "skip"} in heard(tmp_path), timeout=PATIENCE_MS)
    told = [one["command"] for one in heard(tmp_path)]
    assert told == ["resume", *["insist"] * (order is None), "skip"]
    control.close()


@pytest.mark.parametrize("change", ["alone", "join", "words"])
def test_joining_and_leaving_a_swarm_end_no_pause(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot, change: str
) -> None:
    Choices(tmp_path).remember_window(asked=True, willing=True)
    control = Control(tmp_path, Choices(tmp_path), make(GOOD))
    control.learn("alone" if change != "alone" else "others")
    qtbot.waitUntil(lambda: bool(control.view.curve), timeout=PATIENCE_MS)
    control._change(state=NodeStatus.PAUSED, ruling=views.ruling(Reason.PAUSED))
    words = new_words()
    dict(alone=control.leave, join=lambda: control.join("ws://r"), words=lambda: control.join_private(words))[
        change
    ]()
    tell_the_next(qtbot, control)
    qtbot.waitUntil(lambda: '{"command": "skip"}' in spoken(tmp_path), timeout=PATIENCE_MS)
    assert spoken(tmp_path).count('{"command": "resume"}') == 1, "the first start's"
    assert control.view.solo is (change == "alone")
    control.close()


def test_the_first_run_is_in_the_history_before_its_first_round(control: Control) -> None:
    run = Run(run=1, started=1.0, ended=None, first_round=1, last_round=None, outcome=None, engine="torch CPU")
    control._recalled(History(runs=(run,)))
    assert control.view.runs == (run,)
    line = {"event": "decision", "round": 0, "run": False, "reason": "cpu", "sentence": "Giving way."}
    control._line(json.dumps(line).encode())
    assert control.view.happenings[-1].sentence == "Giving way." and control.view.news == ""


def test_a_private_swarms_words_reach_the_node_where_nobody_else_reads_them(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot
) -> None:
    words, link = new_words(), make(GOOD)
    control = Control(tmp_path, Choices(tmp_path), link)
    control.join_private(words)
    qtbot.waitUntil(lambda: len(spoken(tmp_path)) >= 2, timeout=PATIENCE_MS)
    assert spoken(tmp_path)[0] == words, "before any order"
    process = psutil.Process(link.pid)
    assert "--private" in process.cmdline() and "--solo" not in process.cmdline()
    assert words not in " ".join(process.cmdline()) and words not in str(process.environ())
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    control.leave()
    assert control.view.words == words, "alone for a while is not leaving for good"
    control.learn("others")
    assert "--private" in link._options
    control.join("shoal://join/relay.example/reef")
    assert control.view.words == "" and not (tmp_path / FILE).exists() and "--private" not in link._options
    control.close()


def test_with_learning_at_start_switched_off_nothing_starts(
    make: Callable[[str], NodeProcess], tmp_path: Path, qtbot: QtBot
) -> None:
    choices = Choices(tmp_path)
    choices.put("learn_at_start", False)
    choices.remember_window(asked=True)
    control = Control(tmp_path, choices, make(GOOD))
    control.open()
    assert control.view.state is NodeStatus.PAUSED and not control._link.running
    control.set_rule("idle_s", 300)
    assert Preferences(tmp_path).values["idle_s"] == 300
    control.close()


def test_views_come_no_more_often_than_ticks(control: Control, qtbot: QtBot) -> None:
    seen: list[float] = []
    control.changed.connect(lambda _: seen.append(time.monotonic()))
    for at in range(500):
        control._change(done=at)
    qtbot.wait(700)
    assert 1 <= len(seen) <= 3 and control.view.done == 499
