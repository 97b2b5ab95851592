"""The hand-written gradients against finite differences, in double precision."""

from __future__ import annotations

import math

import pytest
import torch
from torch.autograd import gradcheck

from engines.torch_lora.network.functions import gated_lora, lora_linear, normed_lora, rms_norm, rotate


def random(*shape: int, grad: bool = True) -> torch.Tensor:
    return torch.randn(
        *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape))
    ).requires_grad_(grad)


def test_rms_norm() -> None:
    weight = random(6, grad=False)
    assert gradcheck(lambda x: rms_norm(x, weight, 1e-3), (random(5, 6),))
    assert gradcheck(lambda x: rms_norm(x, weight, 1e-3), (random(4, 3, 6),))
    # 3 / sqrt((9 + 16) / 2) = 0.84853
    found = rms_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 2.0]), 0.0)
    torch.testing.assert_close(found, torch.tensor([[0.84853, 2.26274]]), atol=1e-5, rtol=0)


def test_rotate() -> None:
    angle = random(3, 1, 2, grad=False)
    assert gradcheck(lambda x: rotate(x, angle.cos(), angle.sin()), (random(3, 2, 4),))
    quarter = torch.tensor([[[math.pi / 2]]])
    turned = rotate(torch.tensor([[[1.0, 0.0]]]), quarter.cos(), quarter.sin())
    torch.testing.assert_close(turned, torch.tensor([[[0.0, 1.0]]]))


def test_gated_lora() -> None:
    weight, offset, rank = random(6, 4, grad=False), random(6, grad=False), 2
    inputs = random(5, 8), random(rank, 4), random(6, rank)
    assert gradcheck(lambda x, a, b: gated_lora(x, weight, offset, a, b, 2.0, (6,)), inputs)
    # silu(1) * 3 = 3 / (1 + 1/e), through a matrix of one and no adapter
    one, none = torch.ones(1, 1), torch.zeros(1, 1)
    found = gated_lora(torch.tensor([[1.0, 3.0]]), one, None, none, none, 2.0, (1,))
    assert found.item() == pytest.approx(2.19318, abs=1e-5)


def test_normed_lora() -> None:
    norm, weight, offset, widths = (
        random(6, grad=False),
        random(7, 6, grad=False),
        random(7, grad=False),
        (3, 4),
    )
    inputs = random(5, 6), random(4, 6), random(7, 2)
    assert gradcheck(lambda x, a, b: normed_lora(x, norm, 1e-3, weight, offset, a, b, 2.0, widths), inputs)
    x, a, b = inputs
    torch.testing.assert_close(
        normed_lora(x, norm, 1e-3, weight, offset, a, b, 2.0, widths),
        lora_linear(rms_norm(x, norm, 1e-3), weight, offset, a, b, 2.0, widths),
    )


@pytest.mark.parametrize("widths", [(5,), (4, 3, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_lora_linear(widths: tuple[int, ...], bias: bool) -> None:
    rank, out = 2, sum(widths)
    weight, offset = random(out, 6, grad=False), random(out, grad=False) if bias else None

    def apply(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return lora_linear(x, weight, offset, a, b, 2.0, widths)

    x, a, b = random(7, 6), random(rank * len(widths), 6), random(out, rank)
    assert gradcheck(apply, (x, a, b))
    start, columns = 0, []
    for index, width in enumerate(widths):
        low = x @ a[index * rank : (index + 1) * rank].t()
        columns.append(low @ b[start : start + width].t())
        start += width
    expected = x @ weight.t() + 2.0 * torch.cat(columns, 1) + (0 if offset is None else offset)
    torch.testing.assert_close(apply(x, a, b), expected)
