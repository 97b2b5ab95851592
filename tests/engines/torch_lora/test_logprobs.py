"""The chunked loss against a full log-softmax, and worked numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from engines import batches
from engines.torch_lora.network.logprobs import States, TokenTargets, logprobs, token_loss, weighted_loss


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def targets(
    tokens: list[int],
    weights: list[float],
    old: list[float | None] | None = None,
    dtype: torch.dtype = torch.float64,
) -> TokenTargets:
    old = old or [None] * len(tokens)
    return TokenTargets(
        torch.tensor(tokens),
        torch.tensor(weights, dtype=dtype),
        torch.tensor([value or 0.0 for value in old], dtype=dtype),
        torch.tensor([value is not None for value in old]),
    )


def test_worked_example() -> None:
    # logits ln 1, ln 2, ln 5: probabilities 1/8, 2/8, 5/8
    logits = torch.tensor([[1.0, 2.0, 5.0]]).log().requires_grad_()
    states = States(logits, None)
    assert logprobs(states, torch.tensor([1])).item() == pytest.approx(math.log(0.25))
    loss, _, logps_C = weighted_loss(states, targets([1], [2.0], dtype=torch.float32), None)
    assert loss.item() == pytest.approx(-2 * math.log(0.25))
    assert logps_C.tolist() == [pytest.approx(math.log(0.25))]
    loss.backward()
    # -2 * (onehot - p)
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.tensor([[0.25, -1.5, 1.25]]))


@pytest.mark.parametrize("chunk", [1, 3, 1000])
@pytest.mark.parametrize("clip", [None, (0.2, 0.28)])
def test_equals_full_log_softmax(
    chunk: int, clip: tuple[float, float] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "CHUNK_VALUES", chunk * 11)
    count = 16
    head, tokens = random(11, 5), [index % 11 for index in range(count)]
    weights = random(count)
    exact = (random(count, 5) @ head.t()).log_softmax(-1).gather(1, torch.tensor(tokens)[:, None])[:, 0]
    # Old log-probabilities around the present ones, so that both sides of the clip are met; a quarter has none.
    shifts = random(count + 1)[:count] * 0.4
    old = [float(value) if index % 4 else None for index, value in enumerate(exact + shifts)]

    hidden = random(count, 5).requires_grad_()
    logp = (hidden @ head.t()).log_softmax(-1).gather(1, torch.tensor(tokens)[:, None])[:, 0]
    expected = torch.zeros((), dtype=torch.float64)
    for index, value in enumerate(old):
        if value is None:
            expected = expected - weights[index] * logp[index]
            continue
        ratio = (logp[index] - value).exp()
        kept = ratio * weights[index]
        if clip is not None:
            kept = torch.minimum(kept, ratio.clamp(1 - clip[0], 1 + clip[1]) * weights[index])
        expected = expected - kept
    (gradient,) = torch.autograd.grad(expected, hidden)

    mine = random(count, 5).requires_grad_()
    loss, *_ = weighted_loss(States(mine, head), targets(tokens, weights.tolist(), old), clip)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    loss.backward()
    torch.testing.assert_close(mine.grad, gradient)
    torch.testing.assert_close(
        logprobs(States(mine.detach(), head), torch.tensor(tokens)).double(), logp.detach(), atol=1e-6, rtol=0
    )


def test_clip_by_hand() -> None:
    """Advantage +1: a ratio above 1.28 has no gradient. Advantage -1: one below 0.8 has none."""
    old = [0.0, 0.0, 0.0, 0.0]
    logp = torch.tensor([1.5, 0.5, 1.5, 0.5], dtype=torch.float64).log()
    found = token_loss(logp, targets([0] * 4, [1.0, 1.0, -1.0, -1.0], list(old)), (0.2, 0.28))
    torch.testing.assert_close(found[0], torch.tensor([-1.28, -0.5, 1.5, 0.8], dtype=torch.float64))
    torch.testing.assert_close(found[1], torch.tensor([0.0, -0.5, 1.5, 0.0], dtype=torch.float64))


@pytest.mark.parametrize("chunk", [1, 1000])
def test_another_sampler_is_corrected_for(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learner 1/4, 1/8, 5/8, 5/8; the sampler had 1/2, 1/64 (ratio 8, capped at 2), 1/2 and none."""
    monkeypatch.setattr(batches, "CHUNK_VALUES", chunk * 3)
    logits = torch.tensor([[1.0, 2.0, 5.0]]).log().repeat(4, 1).requires_grad_()
    base = targets([1, 0, 2, 2], [1.0, -1.0, 2.0, 3.0], dtype=torch.float32)
    sampler = torch.tensor([0.5, 1 / 64, 0.5, math.nan]).log()
    targeted = replace(base, sampler_C=sampler, sampler_cap=2.0)
    loss, apart, _ = weighted_loss(States(logits, None), targeted, None)
    weights = [0.5, -2.0, 2.5, 3.0]
    logp = [math.log(value) for value in (0.25, 0.125, 0.625, 0.625)]
    assert loss.item() == pytest.approx(-sum(w * x for w, x in zip(weights, logp, strict=True)), rel=1e-5)
    loss.backward()  # the correction is a constant: -w * (onehot - p)
    p = torch.tensor([0.125, 0.25, 0.625])
    expected = torch.stack([w * (p - torch.eye(3)[t]) for w, t in zip(weights, (1, 0, 2, 2), strict=True)])
    torch.testing.assert_close(logits.grad, expected)
    assert apart.tolist() == pytest.approx([math.log(2) + math.log(8) + math.log(1.25), 1, 3], rel=1e-5)


def test_large_logits_do_not_overflow() -> None:
    hidden = torch.tensor([[300.0]], requires_grad=True)
    states = States(hidden, torch.tensor([[300.0], [-300.0]]))
    loss, *_ = weighted_loss(states, targets([1], [1.0], dtype=torch.float32), None)
    assert loss.item() == pytest.approx(180000.0)
    loss.backward()
    assert hidden.grad is not None and torch.isfinite(hidden.grad).all()
