"""tokenizer.json files that end, or fill, the process that reads them: each costs one sentence."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.models.shelf import locate
from engines.contract import EngineError
from engines.models import tokenizer_check
from engines.models.folder import open_folder
from engines.models.tokenizer_check import tokenizer_fault
from engines.models.tokens import ChatTokenizer

STARTER = Path(locate("starter"))


def replaced(pattern: dict[str, str], content: str, times: int) -> dict[str, Any]:
    one = {"type": "Replace", "pattern": pattern, "content": content}
    return {"normalizer": {"type": "Sequence", "normalizers": [one] * times}}


def split(regex: str) -> dict[str, Any]:
    return {
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    }


CHAIN = replaced({"String": "a"}, "a" * 9, 40)
PADDING: dict[str, Any] = {
    "padding": {
        "strategy": {"Fixed": 300_000_000},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "x",
    }
}
SEQUENCE = {"Sequence": {"id": "A", "type_id": 0}}
REPEATED = {
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [SEQUENCE] * 100_000,
        "pair": [SEQUENCE, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {},
    }
}


def written(folder: Path, change: dict[str, Any]) -> Path:
    """Returns a copy of the starter with another tokenizer.json."""
    shutil.copytree(STARTER, folder, dirs_exist_ok=True)
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    return file


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (CHAIN, "replacements"),
        (replaced({"Regex": "."}, "ab", 5), "tokens of"),
        (split("(a|a)*(a|a)*(a|aa)+$x"), "damaged"),
        (split("a(?<!x)\\1"), "damaged"),
        (REPEATED, "memory"),
    ],
    ids=["chain", "growth", "slow", "panic", "repeated"],
)
def test_a_hostile_tokenizer_costs_one_sentence(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    if sys.platform != "linux" and why == "memory":
        pytest.skip("no limit of memory here")
    written(tmp_path, change)
    with pytest.raises(EngineError, match=rf"^tokenizer.json of .*{why}.*: download the model again"):
        ChatTokenizer(open_folder(tmp_path))


def test_padding_is_not_kept(tmp_path: Path) -> None:
    written(tmp_path, PADDING)
    ids = ChatTokenizer(open_folder(tmp_path)).completion("2+2=4", False)
    assert ids == ChatTokenizer(open_folder(STARTER)).completion("2+2=4", False)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process")
@pytest.mark.parametrize("change", [CHAIN, PADDING, REPEATED], ids=["chain", "padding", "repeated"])
def test_without_the_trial_it_ends_who_reads_it(tmp_path: Path, change: dict[str, Any]) -> None:
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9))
from tokenizers import Tokenizer
Tokenizer.from_file({str(written(tmp_path, change))!r}).encode("a banana" * 40)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300)
    assert done.returncode < 0, "a signal, and no error that could be caught"


def test_it_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tokenizer_fault(STARTER / "tokenizer.json") == ""
    monkeypatch.setattr(tokenizer_check.subprocess, "run", lambda *given, **named: pytest.fail("tried again"))
    assert tokenizer_fault(STARTER / "tokenizer.json") == ""
