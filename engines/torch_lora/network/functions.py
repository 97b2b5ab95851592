"""Hand-written autograd functions of the decoder: they save less memory and make fewer passes than torch's own
graph.

Base weights are frozen, so their gradients are never computed. All functions take rows of tokens, (M,
width)."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function
from torch.nn import functional


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Returns `x / sqrt(mean(x^2) + eps) * weight` over the last dimension, computed in fp32."""
    out: torch.Tensor = _RmsNorm.apply(x, weight, eps)  # type: ignore[no-untyped-call]
    return out


class _RmsNorm(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        scale = _rms_scale(x, eps)
        ctx.save_for_backward(x, weight, scale)
        return _normed(x, weight, scale)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _norm_gradient(grads[0], *ctx.saved_tensors), None, None


def _rms_scale(x: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float() if x.dtype != torch.float64 else x
    return torch.rsqrt(wide.square().mean(-1, keepdim=True).add_(eps))


def _normed(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (x * scale).to(x.dtype).mul_(weight)  # the product with the fp32 scale is fp32


def _norm_gradient(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor
) -> torch.Tensor:
    grad = (grad * weight).to(scale.dtype)
    unit = x.to(scale.dtype) * scale
    along = (grad * unit).mean(-1, keepdim=True)
    return grad.sub_(unit.mul_(along)).mul_(scale).to(x.dtype)


def rotate_halves(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotates the two halves of the last dimension against each other, as Llama and Qwen do."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    torch.mul(first, cos, out=out[..., :half]).addcmul_(second, sin, value=-1)
    torch.mul(second, cos, out=out[..., half:]).addcmul_(first, sin)
    return out


class _Rotate(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(cos, sin)
        return rotate_halves(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        cos, sin = ctx.saved_tensors
        return rotate_halves(grads[0], cos, -sin), None, None


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Applies rotary position embedding to (M, heads, head_dim), with cos and sin (M, 1, head_dim / 2)."""
    out: torch.Tensor = _Rotate.apply(x, cos, sin)  # type: ignore[no-untyped-call]
    return out


def _gated(gate_up: torch.Tensor) -> torch.Tensor:
    """Returns `silu(gate) * up` of the fused (M, 2 F), as (M, F)."""
    gate, up = gate_up.chunk(2, -1)
    return functional.silu(gate).mul_(up)


def _gate_gradient(grad: torch.Tensor, gate_up: torch.Tensor) -> torch.Tensor:
    gate, up = gate_up.chunk(2, -1)
    out = torch.empty_like(gate_up)
    grad_gate, grad_up = out.chunk(2, -1)
    torch.mul(grad, functional.silu(gate), out=grad_up)
    torch.ops.aten.silu_backward.grad_input(grad * up, gate, grad_input=grad_gate)
    return out


def _lora(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    a: torch.Tensor,
    b: torch.Tensor,
    scale: float,
    widths: tuple[int, ...],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the output, and `x A^T` for the backward pass."""
    out = functional.linear(x, weight, bias)
    low = functional.linear(x.to(a.dtype), a)
    add_lora(out, low, b, scale, widths)
    return out, low


def _low_gradients(
    grad: torch.Tensor,
    b: torch.Tensor,
    low: torch.Tensor,
    scale: float,
    widths: tuple[int, ...],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the gradients of `x A^T` and of B."""
    wide = grad.to(b.dtype)
    grad_low, grad_b = torch.empty_like(low), torch.empty_like(b)
    for columns, ranks in parts(widths, b.shape[1]):
        torch.mm(wide[:, columns], b[columns], out=grad_low[:, ranks])
        torch.mm(wide[:, columns].t(), low[:, ranks], out=grad_b[columns])
    return grad_low.mul_(scale), grad_b.mul_(scale)


def _input_gradient(
    grad: torch.Tensor, grad_low: torch.Tensor, weight: torch.Tensor, a: torch.Tensor
) -> torch.Tensor:
    grad_x = grad @ weight
    if grad_x.dtype == a.dtype:
        return grad_x.addmm_(grad_low, a)
    grad_x += (grad_low @ a).to(grad_x.dtype)
    return grad_x


def add_lora(
    out: torch.Tensor, low: torch.Tensor, b: torch.Tensor, scale: float, widths: tuple[int, ...]
) -> None:
    """Adds `scale * low B^T` to the base's output in place, layer by layer of a fused projection."""
    for columns, ranks in parts(widths, b.shape[1]):
        if out.dtype == low.dtype:
            out[:, columns].addmm_(low[:, ranks], b[columns].t(), alpha=scale)
        else:
            out[:, columns] += (low[:, ranks] @ b[columns].t()).mul_(scale).to(out.dtype)


def parts(widths: tuple[int, ...], rank: int) -> list[tuple[slice, slice]]:
    """Returns the output columns and low-rank columns of each layer in a fused projection."""
    found, start = [], 0
    for index, width in enumerate(widths):
        found.append((slice(start, start + width), slice(index * rank, (index + 1) * rank)))
        start += width
    return found


class _LoraLinear(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, a: Any, b: Any, scale: float, widths: Any) -> Any:
        out, low = _lora(x, weight, bias, a, b, scale, widths)
        ctx.save_for_backward(x, weight, a, b, low)
        ctx.scale, ctx.widths = scale, widths
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, weight, a, b, low = ctx.saved_tensors
        grad_low, grad_b = _low_gradients(grads[0], b, low, ctx.scale, ctx.widths)
        grad_a = grad_low.t() @ x.to(a.dtype)
        grad_x = _input_gradient(grads[0], grad_low, weight, a) if ctx.needs_input_grad[0] else None
        return grad_x, None, None, grad_a, grad_b, None, None


class _NormedLora(Function):
    """LoRA linear layer after a norm. Saves the norm's input instead of its output: the norm is cheap to
    recompute."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Any,
        norm: Any,
        eps: float,
        weight: Any,
        bias: Any,
        a: Any,
        b: Any,
        scale: float,
        widths: Any,
    ) -> Any:
        rms = _rms_scale(x, eps)
        out, low = _lora(_normed(x, norm, rms), weight, bias, a, b, scale, widths)
        ctx.save_for_backward(x, norm, rms, weight, a, b, low)
        ctx.scale, ctx.widths = scale, widths
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, norm, rms, weight, a, b, low = ctx.saved_tensors
        grad_low, grad_b = _low_gradients(grads[0], b, low, ctx.scale, ctx.widths)
        grad_a = grad_low.t() @ _normed(x, norm, rms).to(a.dtype)
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = _norm_gradient(_input_gradient(grads[0], grad_low, weight, a), x, norm, rms)
        return grad_x, None, None, None, None, grad_a, grad_b, None, None


class _GatedLora(Function):
    """LoRA linear layer after the gate. Saves gate and up, not their product, which would need half as much
    again."""

    @staticmethod
    def forward(
        ctx: Any, gate_up: Any, weight: Any, bias: Any, a: Any, b: Any, scale: float, widths: Any
    ) -> Any:
        out, low = _lora(_gated(gate_up), weight, bias, a, b, scale, widths)
        ctx.save_for_backward(gate_up, weight, a, b, low)
        ctx.scale, ctx.widths = scale, widths
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        gate_up, weight, a, b, low = ctx.saved_tensors
        grad_low, grad_b = _low_gradients(grads[0], b, low, ctx.scale, ctx.widths)
        grad_a = grad_low.t() @ _gated(gate_up).to(a.dtype)
        grad = _gate_gradient(_input_gradient(grads[0], grad_low, weight, a), gate_up)
        return grad, None, None, grad_a, grad_b, None, None


def lora_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    a: torch.Tensor,
    b: torch.Tensor,
    scale: float,
    widths: tuple[int, ...],
) -> torch.Tensor:
    """Returns `x W^T + bias + scale * (x A^T) B^T` for K layers that share their input.

    Shapes: x (M, in), weight (out, in), a (K * rank, in), b (out, rank); `widths` are the K output widths."""
    out: torch.Tensor = _LoraLinear.apply(x, weight, bias, a, b, scale, widths)  # type: ignore[no-untyped-call]
    return out


def normed_lora(
    x: torch.Tensor,
    norm: torch.Tensor,
    eps: float,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    a: torch.Tensor,
    b: torch.Tensor,
    scale: float,
    widths: tuple[int, ...],
) -> torch.Tensor:
    """Returns `lora_linear` of `rms_norm(x, norm, eps)`."""
    out: torch.Tensor = _NormedLora.apply(x, norm, eps, weight, bias, a, b, scale, widths)  # type: ignore[no-untyped-call]
    return out


def gated_lora(
    gate_up: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    a: torch.Tensor,
    b: torch.Tensor,
    scale: float,
    widths: tuple[int, ...],
) -> torch.Tensor:
    """Returns `lora_linear` of `silu(gate) * up`, with gate and up side by side in (M, 2 F)."""
    out: torch.Tensor = _GatedLora.apply(gate_up, weight, bias, a, b, scale, widths)  # type: ignore[no-untyped-call]
    return out
