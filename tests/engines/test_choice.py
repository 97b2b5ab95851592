"""Which engine suits which computer: the rules, on facts of computers that are not this one."""

from __future__ import annotations

import msgspec
import pytest

from engines import facts
from engines.choice import ModelSize, choose, cuda_problem, driver_problem
from engines.facts import Card, HardwareFacts

TINY, HALF_BILLION = (
    ModelSize(name="tiny", parameters=2_500_000),
    ModelSize(name="half", parameters=494_000_000),
)
H100 = Card(name="H100", memory_mb=80_000, free_mb=79_000, capability=(9, 0))
PC = HardwareFacts(
    system="linux",
    machine="x86_64",
    cpu="Some processor",
    cores=8,
    features=("avx2", "fma", "f16c"),
    memory_mb=16_000,
    free_mb=12_000,
    glibc="2.36",
    cards=(),
    driver="",
    driver_problem="",
    cuda="13.0",
    packages={"torch": "2.13.0"},
)
MAC = msgspec.structs.replace(
    PC, system="darwin", machine="arm64", cpu="Apple M3", features=("asimd", "bf16"), glibc="", cuda=""
)
NVIDIA = msgspec.structs.replace(PC, cards=(H100,), driver="580.65.06")


def nothing_wrong(name: str) -> str:
    return ""


@pytest.mark.parametrize(
    ("facts", "size", "way", "dtype"),
    [
        (PC, TINY, "torch-cpu", "float32"),
        (PC, HALF_BILLION, "llamacpp", "float32"),
        (msgspec.structs.replace(PC, features=("avx2", "avx512_bf16")), HALF_BILLION, "llamacpp", "bfloat16"),
        (NVIDIA, TINY, "torch-cuda", "bfloat16"),
        (NVIDIA, HALF_BILLION, "torch-cuda", "bfloat16"),
        (MAC, TINY, "mlx", "bfloat16"),
        (MAC, HALF_BILLION, "mlx", "bfloat16"),
    ],
)
def test_what_is_taken(facts: HardwareFacts, size: ModelSize, way: str, dtype: str) -> None:
    chosen = choose(facts, size, nothing_wrong)
    assert (chosen.way, chosen.dtype) == (way, dtype)
    assert chosen.engine == way.partition("-")[0]
    assert [one.name for one in chosen.engines] == ["torch-cuda", "torch-mps", "torch-cpu", "llamacpp", "mlx"]
    assert all(one.reason.endswith(".") for one in chosen.engines)


def test_nothing_can_run() -> None:
    chosen = choose(PC, TINY, lambda name: f"{name} is broken.")
    assert (chosen.engine, chosen.way, chosen.dtype) == ("", "", "")
    assert "torch is broken." in chosen.reason and not any(one.usable for one in chosen.engines)


def test_a_model_that_does_not_fit_is_refused_with_both_figures() -> None:
    crowded = msgspec.structs.replace(PC, free_mb=4_000)
    chosen = choose(crowded, msgspec.structs.replace(HALF_BILLION, parameters=1_500_000_000), nothing_wrong)
    assert chosen.way == "" and "needs 7,242 MB and 2,800 MB are free" in chosen.reason
    chosen = choose(crowded, HALF_BILLION, nothing_wrong)  # eight bits beside the learner's four bytes
    assert chosen.way == "llamacpp"
    torch_cpu = next(one for one in chosen.engines if one.name == "torch-cpu")
    assert not torch_cpu.usable and "close other programs or choose a smaller model" in torch_cpu.reason


def test_a_model_too_large_for_the_card_runs_on_the_processor() -> None:
    small_card = Card(name="GT", memory_mb=2_000, free_mb=1_500, capability=(7, 5))
    chosen = choose(msgspec.structs.replace(NVIDIA, cards=(small_card,)), HALF_BILLION, nothing_wrong)
    assert chosen.way == "llamacpp" and "free on GT" in chosen.reason


@pytest.mark.parametrize(
    ("cuda", "driver", "problem"),
    [
        ("13.0", "580.65.06", ""),
        ("13.0", "535.104.05", "too old for CUDA 13.0: install 580 or newer"),
        ("12.8", "525.60", ""),
        ("12.8", "470.1", "install 525 or newer"),
        ("14.1", "600.1", ""),
        ("12.8", "", "too old"),
    ],
)
def test_drivers(cuda: str, driver: str, problem: str) -> None:
    assert (problem in driver_problem(cuda, driver)) and bool(driver_problem(cuda, driver)) == bool(problem)


def test_an_old_driver_sends_the_model_to_the_processor_and_says_what_to_do() -> None:
    chosen = choose(msgspec.structs.replace(NVIDIA, driver="470.82"), TINY, nothing_wrong)
    assert chosen.way == "torch-cpu" and "install 580 or newer and restart the computer" in chosen.reason
    silent = msgspec.structs.replace(PC, driver_problem="NVIDIA's driver doesn't answer: restart.")
    assert "doesn't answer" in choose(silent, TINY, nothing_wrong).reason
    plain = msgspec.structs.replace(NVIDIA, cuda="")
    assert "no CUDA, so H100 isn't used" in choose(plain, TINY, nothing_wrong).reason


def test_a_card_older_than_pytorchs_build_is_left_alone_with_the_reason() -> None:
    pascal = msgspec.structs.replace(H100, name="GTX 1060", capability=(6, 1))
    chosen = choose(msgspec.structs.replace(NVIDIA, cards=(pascal,)), TINY, nothing_wrong)
    assert chosen.way == "torch-cpu" and "GTX 1060 is too old" in chosen.reason
    older = msgspec.structs.replace(NVIDIA, cards=(pascal,), cuda="12.6")
    assert choose(older, TINY, nothing_wrong).way == "torch-cuda"


@pytest.mark.parametrize(("torch", "llamacpp", "way"), [(90.0, 120.0, "llamacpp"), (120.0, 90.0, "torch-cpu")])
@pytest.mark.parametrize("size", [TINY, HALF_BILLION])
def test_a_measurement_decides(torch: float, llamacpp: float, way: str, size: ModelSize) -> None:
    chosen = choose(PC, size, nothing_wrong, {"torch": torch, "llamacpp": llamacpp})
    assert chosen.way == way and "120 rounds an hour" in chosen.reason
    loser = next(one for one in chosen.engines if one.name in {"torch-cpu", "llamacpp"} - {way})
    assert "90 rounds an hour" in loser.reason


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_a_card_that_the_environment_hides_is_not_named(monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    monkeypatch.setattr(facts, "has_nvidia_driver", lambda: True)
    monkeypatch.setenv(facts.VISIBLE_CARDS_ENV, hidden)
    found = facts.gather_facts()
    assert (
        found.cards == ()
        and cuda_problem(found) == f"{facts.VISIBLE_CARDS_ENV} hides every NVIDIA card from it."
    )
