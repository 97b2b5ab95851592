"""Models broken in hundreds of ways, each in a trainer of its own: what the trainer says of it.

`python -m tests.node.broken_models MODEL FIRST COUNT ENGINE` prints one JSON object a model: how it was
broken and how that ended. A trainer is a fork of this process, which has loaded the libraries; it runs the
trainer's own code from the node's first request to the first answers.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

PATIENCE_S = 240
TEMPLATES = (
    "{% include 'other' %}",
    "{% extends 'base' %}",
    "{% import 'x' as y %}",
    "{{ messages[7].content }}",
    "{{ 1 / 0 }}",
    "{{ messages | map(attribute='x') | sum }}",
    "{% for i in range(10 ** 9) %}x{% endfor %}",
    "{{ '%s' % (1, 2) }}",
    "{{ 'x' * 10 ** 12 }}",
    "{{ namespace(_x=1) }}",
    "{{ messages | tojson | fromjson }}",
    "{{ undefined.attribute }}",
    "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
    "{{ strftime_now(7) }}",
    "{{ strftime_now('\\ud800') }}",
    "{{ '\\ud800' }}",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "{% if " + "not " * 5000 + "x %}{% endif %}",
    "{{ ''.__class__.__mro__ }}",
    "{{ raise_exception(7) }}",
    "{{ dict(1) }}",
    "{% set x = messages %}{% do x.append(x) %}{{ x | tojson }}",
    "\x00",
    "{% generation %}",
    "{% break %}",
)
VALUES: tuple[Any, ...] = (
    None, True, "", "text", "1e999", -1, 0, 1, 7, 2**31, 2**63, 10**30, -0.5, 1e308, float("inf"), float("nan"),
    [], {}, [None], {"a": None}, ["x"] * 3, "\x00", "9" * 5000,
)  # fmt: skip


def deep(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def paths(tree: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Of every value in a JSON tree."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    found = [at] if at else []
    for key, value in list(inner)[:60]:
        found += paths(value, (*at, key))
    return found


def change(tree: Any, rng: Random) -> str:
    """Another value, of any type, at one place; or none at all there."""
    path = rng.choice(paths(tree))
    parent = tree
    for key in path[:-1]:
        parent = parent[key]
    if rng.random() < 0.15:
        del parent[path[-1]]
        return f"{path} gone"
    parent[path[-1]] = value = rng.choice(VALUES)
    return f"{path} = {value!r:.60}"


def in_json(file: Path, rng: Random) -> str:
    tree = json.loads(file.read_text("utf-8"))
    said = [change(tree, rng) for _ in range(rng.choice((1, 1, 1, 3))) if paths(tree)]
    file.write_text(json.dumps(tree))
    return "; ".join(said)


def in_bytes(file: Path, rng: Random) -> str:
    content = bytearray(file.read_bytes())
    match rng.randrange(4):
        case 0:
            del content[rng.randrange(len(content)) :]
        case 1:
            for _ in range(8):
                content[rng.randrange(min(len(content), 4096))] = rng.randrange(256)
        case 2:
            content[:0] = b"\xff\xfe"
        case 3:
            content = bytearray(deep(rng.choice((200, 5000, 200_000))).encode())
    file.write_bytes(content)
    return "bytes"


def in_header(file: Path, rng: Random) -> str:
    """The header of a safetensors file: eight bytes of length, JSON, then the numbers."""
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    tree = json.loads(content[8 : 8 + size])
    if rng.random() < 0.2:
        header, said = content[8 : 8 + size], "length"
        length = rng.choice((0, 1, size - 1, size + 1, 2**40, 2**63, 2**64 - 1))
    elif rng.random() < 0.1:
        header, said = deep(50_000).encode(), "deep"
        length = len(header)
    else:
        said = change(tree, rng)
        header = json.dumps(tree).encode()
        length = len(header)
    file.write_bytes(length.to_bytes(8, "little") + header + content[8 + size :])
    return said


def break_it(model: Path, seed: int) -> str:
    """Breaks a model folder, the same way for the same seed. Returns how."""
    rng = Random(seed)
    texts = ("config.json", "tokenizer.json", "tokenizer_config.json")
    kind = rng.randrange(10)
    if kind < 5:
        name = rng.choice([*texts, "config.json"])
        return f"{name}: {in_json(model / name, rng)}"
    if kind < 7:
        template = rng.choice(TEMPLATES)
        (model / "chat_template.jinja").write_text(template, "utf-8", "surrogatepass")
        return f"template {template[:60]!r}"
    if kind == 7:
        name = rng.choice([*texts, "model.safetensors"])
        return f"{name}: {in_bytes(model / name, rng)}"
    if kind == 8:
        return f"model.safetensors: {in_header(model / 'model.safetensors', rng)}"
    name = rng.choice(("config.json", "shoal.json", "generation_config.json", "special_tokens_map.json"))
    contents = ("[]", "7", "null", '{"rope_theta": "a', '{"eos_token_id": {"a": 1}}', deep(2000), deep(200_000))
    content = rng.choice(contents)
    (model / name).write_text(content)
    return f"{name} = {content[:40]}"


def trainer(model: Path, engine: str, out: int) -> None:
    """From the node's first request to the first answers, in the trainer's own code; never returns."""
    from app.node.trainer import messages
    from app.node.trainer.process import _open, _work

    os.environ["SHOAL_ENGINE"] = engine
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    prompt = [{"role": "system", "content": "w1"}, {"role": "user", "content": "w2 w3"}]
    for request in (
        messages.OpenModel(number=1, model=str(model), rank=None, seed=1),
        messages.SamplePrompts(number=2, prompts_P=[prompt], n=2, max_tokens=4, seed=5, prompts_at_once=1),
        messages.OpenModel(number=3, model="", rank=None, seed=1),
    ):
        requests.put(messages.to_line(request))
    with os.fdopen(out, "wb", 0) as channel:
        _work(_open, requests, channel)


def tried(model: Path, engine: str) -> dict[str, Any]:
    """How a trainer ends with this model: `sampled`, `sentence`, or `died` with the reason."""
    from app.node.trainer import messages

    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reader)
        signal.alarm(PATIENCE_S)
        os.dup2(os.open(os.devnull, os.O_RDWR), 2)
        os.dup2(2, 1)
        try:
            trainer(model, engine, writer)
        finally:
            os._exit(1)
    os.close(writer)
    number = 0
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            reply = messages.decode_reply(line)
            number = reply.number
            if isinstance(reply, messages.TrainerFailed) or (
                number == 2 and isinstance(reply, messages.Sampled)
            ):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return (
                    {"sentence": reply.sentence}
                    if isinstance(reply, messages.TrainerFailed)
                    else {"sampled": True}
                )
    return {"died": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), "after": number}


def main() -> None:
    source, first, count, engine = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    import app.node.trainer.process  # noqa: F401
    from engines import opening
    from engines.torch_lora.network import native  # noqa: F401

    opening.preload("torch")
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            model = Path(shutil.copytree(source, Path(folder) / str(seed)))
            how = break_it(model, seed)
            print(json.dumps({"seed": seed, "how": how, **tried(model, engine)}), flush=True)
            shutil.rmtree(model)


if __name__ == "__main__":
    main()
