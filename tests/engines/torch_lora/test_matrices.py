"""Adapters beside the weights sample as merged ones do; few rows through the other product give the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engines.facts import LARGE_PARAMETERS
from engines.torch_lora.engine import Base
from engines.torch_lora.network.adapter import Adapter
from engines.torch_lora.network.device import skinny_linear
from engines.torch_lora.network.matrices import linear, merges
from engines.torch_lora.network.native import NativeNetwork
from tests.engines.small_models import MakeModel

PROMPTS = [[[3, 4, 5], [6, 7]], [[8, 9, 10, 11]]]


@pytest.mark.parametrize("shape", [(7, 5), (9728, 8), (1152, 33), (400, 3)])
@pytest.mark.parametrize("rows", [1, 3, 8, 48])
def test_the_other_product_is_the_same(shape: tuple[int, int], rows: int) -> None:
    x, weight = torch.randn(rows, shape[1]), torch.randn(shape)
    torch.testing.assert_close(skinny_linear(x, weight), x @ weight.t(), rtol=1e-4, atol=1e-4)
    bias = torch.randn(shape[0])
    expected = torch.nn.functional.linear(x, weight, bias)
    torch.testing.assert_close(linear(x, weight, bias, skinny=True), expected, rtol=1e-4, atol=1e-4)


def disturbed(base: Base, seed: int) -> Adapter:
    adapter = base.new_adapter(seed)
    with torch.no_grad():
        adapter.values.add_(torch.randn(adapter.values.shape) * 0.1)
    adapter.version += 1
    return adapter


def logits_of(base: Base, adapters: list[Adapter]) -> torch.Tensor:
    """Of the first token and of two more, for both nodes' rows."""
    rollout = base.network.rollout(adapters)
    prompts = PROMPTS[: len(adapters)]
    found = [rollout.prefill(prompts, 3, 4)]
    for token in (4, 5):
        rows = found[0].shape[:2]
        found.append(rollout.advance(torch.full(rows, token)))
    return torch.stack([logits[:, :3] for logits in found])


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("skinny", [False, True])
def test_beside_is_merged(make_model: MakeModel, family: str, nodes: int, skinny: bool) -> None:
    torch.manual_seed(3)
    base = Base(make_model(family))
    network = base.network
    assert isinstance(network, NativeNetwork)
    adapters = [disturbed(base, seed) for seed in range(nodes)]
    merged = logits_of(base, adapters)
    network._merges, network._skinny = False, skinny
    beside = logits_of(base, adapters)
    torch.testing.assert_close(beside, merged, rtol=1e-4, atol=1e-4)
    without = logits_of(base, [base.new_adapter(seed) for seed in range(nodes)])
    assert (without - beside).abs().max() > 0.1


def test_an_adapter_beside_the_weights_changes_at_once(tiny: Path) -> None:
    """Nothing is left of the adapter before, and nothing of one node in another's rows."""
    base = Base(tiny)
    network = base.network
    assert isinstance(network, NativeNetwork)
    network._merges = False
    torch.manual_seed(4)
    first, second = disturbed(base, 1), disturbed(base, 2)
    alone = logits_of(base, [first])
    assert not torch.allclose(alone, logits_of(base, [second]))
    torch.testing.assert_close(logits_of(base, [first]), alone)
    both = logits_of(base, [first, second])
    swapped = logits_of(base, [first, first])
    torch.testing.assert_close(both[:, 0], swapped[:, 0])
    assert not torch.allclose(both[:, 1], swapped[:, 1])


def test_large_models_on_a_processor_are_not_copied() -> None:
    assert merges(torch.device("cpu"), LARGE_PARAMETERS - 1) and not merges(
        torch.device("cpu"), LARGE_PARAMETERS
    )
    assert merges(torch.device("cuda"), 10**9)


def test_weights_are_not_held_twice_while_they_are_read(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are opened anew for embedding, head and each of the two layers."""
    from engines.torch_lora.network import native

    opened: list[str] = []
    real = native.open_weights

    def counted(file: Path, *more: str) -> object:
        opened.append(file.name)
        return real(file, *more)

    monkeypatch.setattr(native, "open_weights", counted)
    Base(tiny)
    assert opened == ["model.safetensors"] * 4
