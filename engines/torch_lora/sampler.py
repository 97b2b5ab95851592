"""The sampling loop: temperature 1, no truncation of the distribution, exact log-probabilities.

Every token is sampled by inverting the cumulative distribution at a uniform number. These numbers are drawn
beforehand from each node's seed on the processor, one per row and step, so a row's tokens depend only on its
seed, its place and the model: not on its neighbours, on rows that left the batch, or on how the batch was
split."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray

from engines.batches import MemoryRecovery
from engines.contract import EngineError, progress
from engines.models.tokens import Sampled, Told
from engines.torch_lora.network.adapter import fold_seed
from engines.torch_lora.network.device import is_out_of_memory
from engines.torch_lora.network.layout import Tokens
from engines.torch_lora.network.network import Rollout

COMPACT_BELOW = 0.8
"""Finished rows are removed from the batch once at most this share is still in progress, because every removal
copies the cache."""


@dataclass(frozen=True)
class Request:
    """Asks for completions from N adapters: `n` for each prompt, N seeds, and the end tokens. `told` is called
    with the tokens of the first completion after every step."""

    prompts_NP: Sequence[Sequence[Tokens]]
    n: int
    max_tokens: int
    seeds_N: Sequence[int]
    stops: Sequence[int]
    temperature: float = 1.0
    told: Told | None = None


def sample(
    request: Request, rollout: Callable[[], Rollout], device: torch.device, prompts_per_pass: int
) -> tuple[list[list[list[Sampled]]], int]:
    """Samples completions, returned as [node][prompt][completion], with the number of prompts per node that
    fitted into one pass. Starts with `prompts_per_pass` and halves it when memory runs out. Raises EngineError
    if not even one prompt fits, or if the logits are not finite."""
    uniforms_N = [
        quantiles(seed, len(prompts), request.n, request.max_tokens)
        for prompts, seed in zip(request.prompts_NP, request.seeds_N, strict=True)
    ]
    results: list[list[list[Sampled]]] = [[] for _ in request.prompts_NP]

    def run(part: slice) -> None:
        prompts_NP = [prompts[part] for prompts in request.prompts_NP]
        found_N = _run(prompts_NP, [uniforms[part] for uniforms in uniforms_N], request, rollout(), device)
        for result, found in zip(results, found_N, strict=True):
            result += found

    most = max(map(len, request.prompts_NP), default=0)
    return results, memory_recovery(device).retry_sampling(
        run, most, prompts_per_pass, request.n, request.max_tokens
    )


def memory_recovery(device: torch.device) -> MemoryRecovery:
    def release() -> None:
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()

    return MemoryRecovery(is_out_of_memory, release)


def quantiles(seed: int, prompts: int, n: int, max_tokens: int) -> torch.Tensor:
    """Returns the quantile in [0, 1) of every token, (P, G, T): fp64 values that are exact in fp32 and never
    round up to 1."""
    generator = torch.Generator().manual_seed(fold_seed(seed))
    drawn = torch.rand(prompts, n, max_tokens, dtype=torch.float64, generator=generator)
    return drawn.float().clamp_(max=1 - 2**-24).double()


@torch.inference_mode()
def _run(
    prompts_NP: list[Sequence[Tokens]],
    uniforms_N: list[torch.Tensor],
    request: Request,
    rollout: Rollout,
    device: torch.device,
) -> list[list[list[Sampled]]]:
    """Samples some prompts of every node in one pass."""
    nodes, rows = len(prompts_NP), max(map(len, prompts_NP)) * request.n
    uniforms_NRT = torch.zeros(nodes, rows, request.max_tokens)
    for node, uniforms in enumerate(uniforms_N):
        uniforms_NRT[node, : len(prompts_NP[node]) * request.n] = uniforms.flatten(0, 1)
    uniforms_NRT = uniforms_NRT.to(device)
    there_NR = torch.tensor([[row < len(prompts) * request.n for row in range(rows)] for prompts in prompts_NP])
    alive_NR = there_NR.to(device)
    stops = torch.tensor(sorted(request.stops), device=device)
    place_NR = torch.arange(rows, device=device).expand(nodes, -1)
    tokens_TNR = torch.zeros(request.max_tokens, nodes, rows, dtype=torch.long, device=device)
    logps_TNR = torch.zeros(request.max_tokens, nodes, rows, device=device)
    length_NR = torch.zeros(nodes, rows, dtype=torch.long, device=device)

    logits_NRV = rollout.prefill(prompts_NP, request.n, request.max_tokens)
    progress.add(sum(len(prompt) for prompts in prompts_NP for prompt in prompts))
    for step in range(request.max_tokens):
        if request.temperature != 1:
            logits_NRV = logits_NRV / request.temperature
        token_NR, logp_NR = draw(logits_NRV, uniforms_NRT[:, :, step].gather(1, place_NR))
        tokens_TNR[step].scatter_(1, place_NR, token_NR)
        logps_TNR[step].scatter_(1, place_NR, logp_NR)
        length_NR.scatter_add_(1, place_NR, alive_NR.long())
        alive_NR = alive_NR & ~torch.isin(token_NR, stops)
        if request.told is not None and not request.told(tokens_TNR[: step + 1, 0, 0].tolist()):
            break
        if step + 1 == request.max_tokens:
            break
        # Reading the count waits for the device, so a GPU is asked only now and then.
        if device.type == "cpu" or step % 8 == 7:
            going = int(alive_NR.sum(1).max())
            if going == 0:
                break
            if going <= COMPACT_BELOW * alive_NR.shape[1]:
                order = torch.sort((~alive_NR).to(torch.int8), dim=1, stable=True).indices[:, :going]
                rollout.keep(order)
                token_NR, alive_NR = token_NR.gather(1, order), alive_NR.gather(1, order)
                place_NR = place_NR.gather(1, order)
        logits_NRV = rollout.advance(token_NR)
        progress.add(token_NR.numel())
    return _collect(prompts_NP, request, tokens_TNR, logps_TNR, length_NR)


def draw(logits: torch.Tensor, uniforms: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the tokens at the given quantiles of softmax(logits), and their log-probabilities in nats;
    `uniforms` are in [0, 1).

    >>> token, logp = draw(torch.tensor([[0.0, 0.0]]).log_softmax(-1), torch.tensor([0.6]))
    >>> token.tolist(), round(float(logp), 4)
    ([1], -0.6931)
    """
    lse = logits.logsumexp(-1, keepdim=True)
    # A GPU adds up in no fixed order: in double precision that is too little to change a token.
    cumulative = (logits - lse).exp_().cumsum(-1, dtype=torch.float64 if logits.is_cuda else None)
    wanted = uniforms.to(cumulative.dtype)[..., None] * cumulative[..., -1:]
    token = torch.searchsorted(cumulative, wanted, right=True).clamp_(max=logits.shape[-1] - 1)
    return token[..., 0], (logits.gather(-1, token) - lse)[..., 0]


def _collect(
    prompts_NP: list[Sequence[Tokens]],
    request: Request,
    tokens_TNR: torch.Tensor,
    logps_TNR: torch.Tensor,
    length_NR: torch.Tensor,
) -> list[list[list[Sampled]]]:
    tokens = tokens_TNR.permute(1, 2, 0).tolist()
    logps = logps_TNR.permute(1, 2, 0).tolist()
    lengths = length_NR.tolist()
    if not bool(torch.isfinite(logps_TNR).all()):
        raise EngineError("The model produced numbers that aren't finite: go back to an earlier checkpoint.")
    stops = set(request.stops)

    def row(node: int, index: int) -> Sampled:
        length = lengths[node][index]
        ids = tokens[node][index][:length]
        return ids, logps[node][index][:length], ids[-1] in stops

    return [
        [[row(node, prompt * request.n + g) for g in range(request.n)] for prompt in range(len(prompts))]
        for node, prompts in enumerate(prompts_NP)
    ]


class TorchDecoder:
    """Rows of one adapter, or of the base, as `engines.contract.Decoder`."""

    joins = False

    def __init__(self, rollout: Rollout, rows: int) -> None:
        self._rollout, self.rows = rollout, rows

    @torch.inference_mode()
    def read(self, prompts_R: Sequence[Sequence[int]], more: int) -> NDArray[Any]:
        return self._seen(self._rollout.prefill([list(map(list, prompts_R))], 1, more))

    @torch.inference_mode()
    def advance(self, tokens_R: Sequence[int]) -> NDArray[Any]:
        return self._seen(self._rollout.advance(torch.tensor([list(tokens_R)], device=self._device)))

    @torch.inference_mode()
    def keep(self, rows_R: Sequence[int]) -> None:
        self._rollout.keep(torch.tensor([list(rows_R)], device=self._device))

    def _seen(self, logits_NRV: torch.Tensor) -> NDArray[Any]:
        self._device = logits_NRV.device
        found: NDArray[Any] = logits_NRV[0].float().cpu().numpy()
        return found
