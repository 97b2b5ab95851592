"""Autograd functions of the decoder, by hand: they save less and make fewer passes than torch's own graph.

Base weights are frozen, so no gradient for them is ever formed. All take rows of tokens, (M, width).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function
from torch.nn import functional


class _RmsNorm(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        wide = x.float() if x.dtype != torch.float64 else x
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True).add_(eps))
        ctx.save_for_backward(x, weight, scale)
        return (wide * scale).to(x.dtype).mul_(weight)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, weight, scale = ctx.saved_tensors
        grad = (grads[0] * weight).to(scale.dtype)
        unit = x.to(scale.dtype) * scale
        along = (grad * unit).mean(-1, keepdim=True)
        return grad.sub_(unit.mul_(along)).mul_(scale).to(x.dtype), None, None


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """`x / sqrt(mean(x^2) + eps) * weight` over the last dimension, in fp32 inside."""
    out: torch.Tensor = _RmsNorm.apply(x, weight, eps)  # type: ignore[no-untyped-call]
    return out


def turn(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
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
        return turn(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        cos, sin = ctx.saved_tensors
        return turn(grads[0], cos, -sin), None, None


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding of (M, heads, head_dim) by (M, 1, head_dim / 2)."""
    out: torch.Tensor = _Rotate.apply(x, cos, sin)  # type: ignore[no-untyped-call]
    return out


class _SwiGlu(Function):
    @staticmethod
    def forward(ctx: Any, gate_up: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(gate_up)
        gate, up = gate_up.chunk(2, -1)
        return functional.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (gate_up,) = ctx.saved_tensors
        gate, up = gate_up.chunk(2, -1)
        out = torch.empty_like(gate_up)
        grad_gate, grad_up = out.chunk(2, -1)
        torch.mul(grads[0], functional.silu(gate), out=grad_up)
        torch.ops.aten.silu_backward.grad_input(grads[0] * up, gate, grad_input=grad_gate)
        return out


def swiglu(gate_up: torch.Tensor) -> torch.Tensor:
    """`silu(gate) * up` of the fused (M, 2 F), giving (M, F)."""
    out: torch.Tensor = _SwiGlu.apply(gate_up)  # type: ignore[no-untyped-call]
    return out


class _LoraLinear(Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        a: torch.Tensor,
        b: torch.Tensor,
        scale: float,
        widths: tuple[int, ...],
    ) -> torch.Tensor:
        out = functional.linear(x, weight, bias)
        low = functional.linear(x.to(a.dtype), a)
        for columns, ranks in _parts(widths, b.shape[1]):
            if out.dtype == low.dtype:
                out[:, columns].addmm_(low[:, ranks], b[columns].t(), alpha=scale)
            else:
                out[:, columns] += (low[:, ranks] @ b[columns].t()).mul_(scale).to(out.dtype)
        ctx.save_for_backward(x, weight, a, b, low)
        ctx.scale, ctx.widths = scale, widths
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, weight, a, b, low = ctx.saved_tensors
        grad, wide = grads[0], grads[0].to(a.dtype)
        grad_low, grad_b = torch.empty_like(low), torch.empty_like(b)
        for columns, ranks in _parts(ctx.widths, b.shape[1]):
            torch.mm(wide[:, columns], b[columns], out=grad_low[:, ranks])
            torch.mm(wide[:, columns].t(), low[:, ranks], out=grad_b[columns])
        grad_low.mul_(ctx.scale)
        grad_b.mul_(ctx.scale)
        grad_a = grad_low.t() @ x.to(a.dtype)
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = grad @ weight
            if grad_x.dtype == a.dtype:
                grad_x.addmm_(grad_low, a)
            else:
                grad_x += (grad_low @ a).to(grad_x.dtype)
        return grad_x, None, None, grad_a, grad_b, None, None


def _parts(widths: tuple[int, ...], rank: int) -> list[tuple[slice, slice]]:
    """Output columns and low-rank columns of each layer in a fused projection."""
    parts, start = [], 0
    for index, width in enumerate(widths):
        parts.append((slice(start, start + width), slice(index * rank, (index + 1) * rank)))
        start += width
    return parts


def lora_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    a: torch.Tensor,
    b: torch.Tensor,
    scale: float,
    widths: tuple[int, ...],
) -> torch.Tensor:
    """`x W^T + bias + scale * (x A^T) B^T` for K layers that share their input.

    Shapes: x (M, in), weight (out, in), a (K * rank, in), b (out, rank); `widths` are the K output widths."""
    out: torch.Tensor = _LoraLinear.apply(x, weight, bias, a, b, scale, widths)  # type: ignore[no-untyped-call]
    return out
