"""The starter's vocabulary: single bytes, single digits, and whole phrases of the puzzles' templates.

Phrases make a question some ten tokens long, which is what lets a model of this size learn in minutes. Anything
else is read byte by byte. The form is Qwen2's own byte-level BPE (without merges, phrases as added tokens),
because transformers gives every Qwen2 model that tokenizer class, whatever its folder says.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken
from transformers import Qwen2Tokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

PAD, END = "<pad>", "<end>"

PHRASES = (
    "State the final answer to the following arithmetic problem: ",
    "Calculate ",
    "Find the Greatest Common Divisor (GCD) of these numbers: ",
    ". Give only the GCD as your final answer.",
    "Find the Least Common Multiple (LCM) of these numbers: ",
    "Simplify the fraction ",
    " to its lowest terms. Give only the simplified fraction as your final answer.",
    "Find the value of ",
    " in the equation: ",
    "Solve for ",
    "Determine the value of ",
    " that satisfies: ",
    "Your task is to convert a number between two different bases.\n\nIf the target base is > 10, use "
    "lowercase letters a-z for digits above 9.\n\nNow, convert the ",
    " number ",
    " to ",
    "base-",
    "binary",
    "hexadecimal",
    "Spell this word backward (example: sun -> nus): ",
    "How many 1 bits are there in the binary representation of the number ",
    " + ",
    " - ",
    " * ",
    " = ",
    ", ",
)

CHAT_TEMPLATE = "{{ messages[-1]['content'] + '\\n' }}"
"""The question and a line break; the starter takes no instructions. (A bare line break at the end of a template
is trimmed.)"""


def make_tokenizer() -> Qwen2Tokenizer:
    """A tokenizer whose decoding is the exact text, so that what peers send re-encodes to the same tokens."""
    vocabulary = {token: number for number, token in enumerate([PAD, END, *bytes_to_unicode().values()])}
    tokenizer = Qwen2Tokenizer(
        vocab=vocabulary,
        merges=[],
        unk_token=None,  # type: ignore[arg-type]  # every byte is known
        bos_token=None,
        eos_token=END,
        pad_token=PAD,
        model_max_length=192,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in PHRASES])
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def save_tokenizer(folder: Path) -> None:
    """Writes the tokenizer so that transformers' AutoTokenizer opens it."""
    make_tokenizer().save_pretrained(folder)
