from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial

import msgspec

from app.lab.arms import parse_arm
from app.lab.plan import LabRound, StudyPlan
from app.lab.rounds.experiment import Experiment
from app.sapo.scoring.sandbox import Sandbox, score_group
from engines.contract import TokenSequence
from tests.lab.fake_swarm import END, FakeSwarm

PLAN = StudyPlan(
    model="fake",
    weights="",
    questions="",
    levels={"chain_sum": 1},
    nodes=3,
    rounds=4,
    group=4,
    learning_rate=0.001,
    rank=None,
    max_tokens=16,
    probe_every=2,
    probe_items=24,
    window=None,
    attempts=6,
)


class Lab:
    """Runs arms on a fake swarm and keeps what it saw."""

    def __init__(
        self, sandbox: Sandbox, arm: str, plan: StudyPlan = PLAN, seed: int = 0, start: float = -2.0
    ) -> None:
        self.swarm = FakeSwarm(plan.nodes, start)
        self.arm = parse_arm(arm, "faithful")
        experiment = Experiment(plan, self.arm, seed, self.swarm, partial(score_group, sandbox))
        self.experiment = experiment
        self.records: list[LabRound] = list(experiment.rounds())

    def asked(self) -> list[list[list[str]]]:
        """The training questions, sample call by sample call: those answered by a whole group."""
        return self.asked_by(PLAN.group)

    def asked_by(self, group: int) -> list[list[list[str]]]:
        """The same where a group is of another size; every node asks four."""
        asked = [questions_NP for n, questions_NP in self.swarm.asked if n == group]
        return asked if group == PLAN.group else [call for call in asked if {*map(len, call)} == {4}]


def varied(**changes: object) -> StudyPlan:
    return msgspec.structs.replace(PLAN, **changes)


def test_every_round_is_there_and_the_probe_comes_first_last_and_every_second(sandbox: Sandbox) -> None:
    records = Lab(sandbox, "4/4").records
    assert [record.round for record in records] == [0, 1, 2, 3, 4]
    assert [record.round for record in records if record.probe] == [0, 2, 4]
    assert all(len(record.probe.pass_at_1_N) == 3 for record in records if record.probe)


def test_own_question_k_of_a_node_and_round_is_the_same_whatever_the_arm(sandbox: Sandbox) -> None:
    wide, narrow = Lab(sandbox, "4/0").asked(), Lab(sandbox, "2/2@default").asked()
    dynamic = Lab(sandbox, "2/2+ds", varied(attempts=1)).asked()
    for call_wide, call_narrow, call_dynamic in zip(wide, narrow, dynamic, strict=True):
        assert [questions[:2] for questions in call_wide] == call_narrow == call_dynamic
    assert Lab(sandbox, "4/0", seed=1).asked()[0] != wide[0]


def test_no_training_question_is_a_probe_question(sandbox: Sandbox) -> None:
    lab = Lab(sandbox, "4/4+ds")
    trained = {text for call in lab.asked() for node in call for text in node}
    probed = {question.text for question in lab.experiment.prober.questions}
    assert len(trained) > 40 and len(probed) == 24
    assert not trained & probed


def test_the_same_run_twice_is_the_same(sandbox: Sandbox) -> None:
    def timeless(records: Sequence[LabRound]) -> list[LabRound]:
        still = {"seconds": 0.0, "cpu_seconds": 0.0, "sampling_seconds": 0.0, "learning_seconds": 0.0}
        return [msgspec.structs.replace(record, **still) for record in records]

    first, second = Lab(sandbox, "2/2@default"), Lab(sandbox, "2/2@default")
    assert timeless(first.records) == timeless(second.records)
    assert first.swarm.batches == second.swarm.batches


def test_dynamic_sampling_counts_everything_and_fills_the_batch(sandbox: Sandbox) -> None:
    plan = varied(probe_every=99)
    lab = Lab(sandbox, "4/0+ds", plan)
    probed = 2 * 3 * 24  # at the start and the end
    assert sum(record.generated for record in lab.records) == lab.swarm.sampled - probed
    plain = Lab(sandbox, "4/0", plan)
    for dynamic, static in zip(lab.records[1:], plain.records[1:], strict=True):
        assert dynamic.generated > static.generated
        assert dynamic.informative_own > static.informative_own
    # a place is redrawn only while it is open: no call asks for more than is missing
    first_round = [list(map(len, call)) for call in lab.asked()][:6]
    assert first_round[0] == [4, 4, 4]
    assert all(
        a >= b
        for before, after in itertools.pairwise(first_round)
        if sum(after) < 12
        for a, b in zip(before, after, strict=True)
    )


def test_dynamic_sampling_gives_up_after_its_attempts(sandbox: Sandbox) -> None:
    lab = Lab(sandbox, "2/0+ds", varied(attempts=3), start=-40.0)  # five in a hundred guesses are right
    assert all(record.generated <= 3 * 2 * 4 * 3 for record in lab.records[1:])
    assert any(record.informative_own < 2 for record in lab.records[1:])


def test_peers_are_informative_foreign_and_encoded_by_the_receiver(sandbox: Sandbox) -> None:
    lab = Lab(sandbox, "4/4")
    assert all(0 < record.informative_peer <= 4 for record in lab.records[1:])
    assert any(not finished for _, finished in lab.swarm.foreign)
    own_texts = [{text for call in lab.asked() for text in call[node]} for node in range(3)]
    for node, batch in lab.swarm.batches:
        peer = [row for row in batch.rows_S if row.old_logprobs_T is None]
        assert not {"".join(map(chr, row.prompt_T)) for row in peer} & own_texts[node]
        own = [row for row in batch.rows_S if row.old_logprobs_T is not None]
        assert own or peer
        assert batch.clip == (0.2, 0.28)
        # whatever has a weight had ended, so the end token is trained, and only there
        assert all(row.completion_T[-1] == END and row.completion_T.count(END) == 1 for row in batch.rows_S)


def test_no_peer_group_is_trained_on_twice_and_the_window_closes(sandbox: Sandbox) -> None:
    for arm, window in (
        ("1/6@default", None),
        ("1/6", 2),
        ("3/1", 2),
        ("3/1", 0),
    ):  # 3/1 leaves much in the pool
        lab = Lab(sandbox, arm, varied(rounds=6, window=window))
        limit = 4 if window is None else window
        own = {node: set() for node in range(3)}  # type: ignore[var-annotated]
        born: dict[str, int] = {}
        for number, call in enumerate(lab.asked(), start=1):
            for node, questions in enumerate(call):
                own[node] |= set(questions)
                born |= dict.fromkeys(questions, number)
        seen: dict[int, list[str]] = {node: [] for node in range(3)}
        steps = iter(lab.swarm.batches)
        for record in lab.records[1:]:
            for node, batch in [next(steps) for _ in range(record.steps)]:
                prompts = {"".join(map(chr, row.prompt_T)) for row in batch.rows_S} - own[node]
                assert all(record.round - born[prompt] <= limit for prompt in prompts)
                seen[node] += prompts
        assert all(len(prompts) == len(set(prompts)) for prompts in seen.values())
        assert any(seen.values())


def test_the_default_recipe_asks_how_likely_peer_text_is(sandbox: Sandbox) -> None:
    class Doubtful(FakeSwarm):
        """Finds all foreign text absurd."""

        def logprobs(self, node: int, sequences_S: Sequence[TokenSequence]) -> list[list[float]]:
            return [[-20.0] * len(sequence.completion_T) for sequence in sequences_S]

    swarm = Doubtful(3)
    arm = parse_arm("2/2@default", "faithful")
    records = list(Experiment(PLAN, arm, 0, swarm, partial(score_group, sandbox)).rounds())
    assert sum(record.gated_right for record in records) > 0
    own = [{text for _, call in swarm.asked for text in call[node]} for node in range(3)]
    for node, batch in swarm.batches:
        assert {"".join(map(chr, row.prompt_T)) for row in batch.rows_S} <= own[node]


def test_swarms_learn_that_working_pays_and_the_shuffled_control_does_not(sandbox: Sandbox) -> None:
    plan = varied(rounds=12, probe_every=12, nodes=4)
    learnt, control = Lab(sandbox, "8/0", plan), Lab(sandbox, "8/0!shuffled", plan)
    shared = Lab(sandbox, "4/4@default", plan)
    rise = {
        name: sum(lab.swarm.lean) / 4 + 2.0
        for name, lab in (("learnt", learnt), ("shared", shared), ("control", control))
    }
    assert rise["learnt"] > 0.5 and rise["shared"] > 0.5
    assert abs(rise["control"]) < 0.3 * rise["learnt"]
    assert control.records[-1].own_reward < learnt.records[-1].own_reward  # the true rewards are recorded
