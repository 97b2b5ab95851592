"""From a name to an engine: refused, replaced, remembered. The engines themselves have tests of their own."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from app.models.shelf import starter_folder
from engines import choice, opening
from engines.contract import EngineError
from engines.facts import ENGINES, gather_facts
from engines.llamacpp.grammar import Grammars
from tests.engines.test_choice import PC

STARTER = starter_folder()

TRIAL = choice.Trial(
    engine="torch",
    dtype="float32",
    device="CPU",
    rounds_per_hour=30.0,
    memory_mb=500,
)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Stand-ins for the three packages, all of them there and willing; a test makes one of them unwilling."""
    made = {}
    for name, (_, path, *_) in ENGINES.items():
        package = ModuleType(path)
        package.why_unavailable = lambda: ""
        package.open_engine = lambda model, name=name, **options: SimpleNamespace(
            name=name, options=options, notes=[]
        )
        monkeypatch.setitem(sys.modules, path, package)
        made[name] = package
    monkeypatch.setattr(opening, "why_not_installed", lambda name: "")
    monkeypatch.delenv("SHOAL_HOME", raising=False)
    return made


def refuse(sentence: str) -> object:
    def open_engine(model: object, **options: object) -> None:
        raise EngineError(sentence)

    return open_engine


def test_a_named_engine_is_opened_with_what_was_given(packages: dict[str, ModuleType]) -> None:
    engine = opening.open_engine("mlx", STARTER, rank=4, seed=3, batch_share=0.5)
    assert engine.name == "mlx"
    assert engine.options["rank"] == 4 and engine.options["seed"] == 3 and engine.options["batch_share"] == 0.5


def test_a_named_engine_that_cannot_run_is_refused_and_never_replaced(packages: dict[str, ModuleType]) -> None:
    packages["llamacpp"].why_unavailable = lambda: "There is no compiler: install one."
    with pytest.raises(EngineError, match="There is no compiler: install one"):
        opening.open_engine("llamacpp", STARTER)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(EngineError, match="no engine 'tensorflow': choose auto, torch, llamacpp, mlx"):
        opening.open_engine("tensorflow", STARTER)


def test_a_library_that_breaks_while_it_loads_is_a_reason(packages: dict[str, ModuleType]) -> None:
    def broken() -> str:
        raise OSError("libllama.so: file too short")

    packages["llamacpp"].why_unavailable = broken
    assert "doesn't load (libllama.so: file too short)" in opening.why_unavailable("llamacpp")


def test_the_chosen_engine_falls_back_and_says_so(
    packages: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening.computer, "gather_facts", lambda: PC)
    monkeypatch.setattr(opening, "count_parameters", lambda folder: 494_000_000)
    assert opening.open_engine("auto", STARTER).name == "llamacpp"
    packages["llamacpp"].open_engine = refuse("llama.cpp knows no such architecture.")
    engine = opening.open_engine("auto", STARTER)
    assert engine.name == "torch"
    assert engine.notes == ["llama.cpp knows no such architecture. PyTorch takes its place."]
    packages["torch"].open_engine = refuse("Memory is short.")
    with pytest.raises(EngineError, match="Memory is short"):
        opening.open_engine("auto", STARTER)


def test_what_the_builder_says_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert "./shoal setup --engine llamacpp" in opening.why_not_installed("llamacpp")
    (tmp_path / opening.BUILD_STATUS_FILE).write_text("llama.cpp is being built.\n")
    assert opening.why_not_installed("llamacpp") == "llama.cpp is being built."
    with pytest.raises(EngineError, match=r"need llama\.cpp: llama\.cpp is being built\."):
        Grammars(STARTER)
    assert "Apple Silicon" in opening.why_not_installed("mlx") and "./shoal setup" in opening.why_not_installed(
        "torch"
    )


def test_a_trial_is_remembered_for_its_model_computer_and_packages_alone(tmp_path: Path) -> None:
    facts = gather_facts()
    key = choice.trial_key("a model", facts)
    assert choice.load_trials(tmp_path, key) == {}
    choice.save_trials(tmp_path, key, {"torch": TRIAL})
    assert choice.load_trials(tmp_path, key) == {"torch": TRIAL}
    assert choice.load_trials(tmp_path, choice.trial_key("another model", facts)) == {}
    assert choice.trial_key("a model", PC) != key
    (tmp_path / choice.TRIALS_FILE).write_text("damaged")
    assert choice.load_trials(tmp_path, key) == {}
    choice.save_trials(tmp_path, key, {"llamacpp": TRIAL})
    assert list(choice.load_trials(tmp_path, key)) == ["llamacpp"]


def test_a_remembered_trial_decides(
    packages: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import msgspec

    monkeypatch.setattr(opening.computer, "gather_facts", lambda: PC)
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path))
    assert opening.open_engine("auto", STARTER).name == "torch"
    folder = opening.open_folder(STARTER)
    faster = msgspec.structs.replace(TRIAL, engine="llamacpp", rounds_per_hour=60.0)
    key = choice.trial_key(opening.fingerprint(folder), PC)
    choice.save_trials(tmp_path, key, {"torch": TRIAL, "llamacpp": faster})
    assert opening.open_engine("auto", STARTER).name == "llamacpp"
