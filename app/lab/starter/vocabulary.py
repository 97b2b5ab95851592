"""The starter's vocabulary: single characters, single digits, and whole phrases of the puzzles' templates.

Phrases make a question some twenty tokens long, which is what lets a model of this size learn in minutes.
Anything else is read character by character.
"""

from __future__ import annotations

import re
import string
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

PAD, END, UNKNOWN = "<pad>", "<end>", "<unk>"

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
    "Your task is to convert a number between two different bases.\n\nIf the target base is > 10, use lowercase "
    "letters a-z for digits above 9.\n\nNow, convert the ",
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

CHAT_TEMPLATE = "{{ messages[-1]['content'] }}\n"
"""The question and a line break; the starter takes no instructions."""


def make_tokenizer() -> Tokenizer:
    """A tokenizer whose decoding is the exact text, so that what peers send re-encodes to the same tokens."""
    characters = string.ascii_letters + string.digits + string.punctuation + " \n"
    tokens = [PAD, END, UNKNOWN, *characters, *PHRASES]
    tokenizer = Tokenizer(
        models.WordLevel({token: number for number, token in enumerate(tokens)}, unk_token=UNKNOWN)
    )
    phrases = "|".join(re.escape(phrase) for phrase in sorted(PHRASES, key=len, reverse=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(f"{phrases}|(?m:.)"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([PAD, END, UNKNOWN])
    return tokenizer


def save_tokenizer(folder: Path) -> None:
    """Writes the tokenizer so that transformers' AutoTokenizer opens it."""
    from transformers import PreTrainedTokenizerFast

    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(),
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
        model_max_length=192,
    )
    wrapped.chat_template = CHAT_TEMPLATE
    wrapped.save_pretrained(folder)
