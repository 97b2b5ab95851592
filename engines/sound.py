"""Converts the errors that a broken model makes a library raise into one sentence.

A model's files come from anywhere. They are read with checks, but the libraries behind (tokenizers,
safetensors, jinja, torch) raise all kinds of errors at a wrong type, a shape that does not fit or endless
nesting. Restarting the process would raise them again."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from engines.contract import EngineError

_Result = TypeVar("_Result")
_OF_DATA = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)
_OF_MEMORY = ("out of memory", "allocate", "DefaultCPUAllocator")
_OF_DEVICES = ("CUDA", "MPS", "HIP", "cuDNN", "NCCL")
"""Words that identify an error of a GPU, which a restart may clear."""
_READERS = ("safetensors", "jinja2", "transformers", "huggingface_hub")
_LONGEST = 120


@contextmanager
def explaining_model_errors(model: str | Path) -> Iterator[None]:
    """Raises EngineError if the model's own content makes the block fail, with the details on standard error.
    Errors that are not the model's fault pass through."""
    name = Path(model).name
    try:
        yield
    except EngineError:
        raise
    except BaseException as error:
        if is_out_of_memory(error):
            raise EngineError(
                f"{name} doesn't fit into memory: close other programs or choose a smaller model."
            ) from error
        if not _of_data(error):
            raise
        traceback.print_exc()
        said = ": ".join(
            filter(None, (type(error).__name__, " ".join(str(error).split())[:_LONGEST].rstrip(".: ")))
        )
        raise EngineError(
            f"The model {name} can't be used ({said}): download it again or choose another."
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether memory could not be allocated; a wrong size in a damaged file can cause that too.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("a and b have other shapes"))
    (True, False)
    """
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(word in str(error) for word in _OF_MEMORY)


def _of_data(error: BaseException) -> bool:
    if isinstance(error, _OF_DATA):
        return True
    kind = type(error)
    if kind is RuntimeError:
        return not any(word in str(error) for word in _OF_DEVICES)
    # The tokenizers library raises bare Exceptions, and panics; the others have classes of their own.
    return kind is Exception or kind.__name__ == "PanicException" or kind.__module__.startswith(_READERS)


def call_with_timeout(seconds: float, work: Callable[[], _Result]) -> _Result:
    """Returns what `work` returns, or raises what it raises. Raises TimeoutError after `seconds`; `work` then
    continues in a thread that ends with the process."""
    done: list[_Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # re-raised in the caller
            failed.append(error)

    thread = threading.Thread(target=run, name="model", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError(f"It took longer than {seconds:.0f} seconds.")
    return done[0]
