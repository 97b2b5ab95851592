"""The server for other programs: what it answers, what it refuses, and what it survives."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import select
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.models.shelf import locate
from app.node.record.reasons import Reason
from app.serve.model import ModelProcess
from app.serve.openai import RequestError
from app.serve.server import MAX_BODY, MAX_CONNECTIONS, MAX_HEAD_S, Server
from tests.e2e.shoal import Running
from tests.serve.served import QUESTION, Served, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("home")) as found:
        yield found


def text(answer: dict[str, Any]) -> list[str]:
    return [choice["message"]["content"] for choice in answer["choices"]]


def test_both_sides_of_the_model_are_listed_without_loading_it(server: Served) -> None:
    status, body = server.ask("models")
    assert (status, [one["id"] for one in json.loads(body)["data"]]) == (200, ["starter", "puzzles"])
    assert not psutil.Process(server.process.pid).children()
    assert server.ask("models/puzzles")[0] == 200


def test_a_stream_says_the_same_as_a_whole_answer_of_the_same_seed(server: Served) -> None:
    whole = server.chat(seed=5, n=2, logprobs=True, top_logprobs=2)
    events = server.stream(seed=5, n=2, logprobs=True, stream_options={"include_usage": True})
    said = ["", ""]
    reasons: dict[int, str] = {}
    logprobs: list[list[Any]] = [[], []]
    for event in events[:-1]:
        (choice,) = event["choices"]
        said[choice["index"]] += choice["delta"].get("content") or ""
        logprobs[choice["index"]] += (choice["logprobs"] or {}).get("content", [])
        if choice["finish_reason"]:
            reasons[choice["index"]] = choice["finish_reason"]
    assert said == text(whole)
    assert [reasons[0], reasons[1]] == [choice["finish_reason"] for choice in whole["choices"]]
    assert events[-1]["usage"] == whole["usage"]
    for choice, seen in zip(whole["choices"], logprobs, strict=True):
        own = choice["logprobs"]["content"]
        assert [one["token"] for one in own] == [one["token"] for one in seen]
        assert "".join(one["token"] for one in own) == choice["message"]["content"]
        assert all(one["logprob"] <= one["top_logprobs"][0]["logprob"] <= 0 for one in own)


def test_many_at_once_get_what_each_gets_alone(server: Served) -> None:
    asked = [
        {"model": side, "prompt": f"{n}+{n}=", "max_tokens": 12, "temperature": 0}
        for n in range(10, 16)
        for side in server.models
    ]

    def answer(body: dict[str, Any]) -> str:
        status, found = server.ask("completions", body)
        assert status == 200, found
        return str(json.loads(found)["choices"][0]["text"])

    with ThreadPoolExecutor(12) as threads:
        together = list(threads.map(answer, asked))
    assert together == [answer(body) for body in asked]


def test_plain_talk_gets_nothing_added_and_what_was_learned_its_own_instruction(tmp_path: Path) -> None:
    model = Path(
        shutil.copytree(locate("starter"), tmp_path / "talks")
    )  # the starter reads the last message alone
    (model / "chat_template.jinja").write_text(
        "{% for one in messages %}{{ one['content'] + '\\n' }}{% endfor %}"
    )
    with served(tmp_path / "home", "--model", str(model)) as server:
        assert server.models == ["talks", "puzzles"]
        plain, learned = (server.chat(model=name, max_tokens=1)["usage"] for name in server.models)
        assert plain["prompt_tokens"] < learned["prompt_tokens"]
        said = [{"role": "system", "content": "Add."}, *QUESTION["messages"]]
        one, other = (server.chat(model=name, messages=said, max_tokens=1)["usage"] for name in server.models)
        assert one == other, "a program's own instruction stands alone, whichever model it asks"
        greedy = {text(server.chat(model="puzzles", max_tokens=8))[0] for _ in range(3)}
        assert len(greedy) == 1


def test_every_spelling_is_the_models_and_an_unknown_name_hears_which_there_are(tmp_path: Path) -> None:
    server = Server(ModelProcess([], tmp_path, lambda _: None), "smollm2-135m", "")
    for name in ("HuggingFaceTB/SmolLM2-135M-Instruct", "SmolLM2 135M", "smollm2-135m", "puzzles"):
        assert asyncio.run(server._known(name)) == (name, name == "puzzles")
    with pytest.raises(RequestError, match=r"There is no 'mail'\. There are: smollm2-135m, puzzles") as refused:
        asyncio.run(server._known("mail"))
    assert (refused.value.status, refused.value.code) == (404, "model_not_found")


@pytest.mark.parametrize(
    "details",
    [
        {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto"},
        {"functions": [{"name": "f"}], "function_call": "none"},
        {"max_tokens": -1, "temperature": 0},
        {"max_tokens": 6.0, "top_p": 0},
        {"stop": list("vwxyz")},
        {"messages": [{"role": "user", "content": "What is 12 + 7? \ud83d"}]},
        {
            "messages": [
                *QUESTION["messages"],
                {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "19"},
            ]
        },
    ],
)
def test_what_programs_send_is_answered(server: Served, details: dict[str, Any]) -> None:
    assert server.chat(**{"max_tokens": 6, **details})["choices"]


def test_an_answer_ends_before_a_stop_and_at_its_most_tokens(server: Served) -> None:
    whole = text(server.chat(temperature=0))[0]
    stopped = server.chat(temperature=0, stop=[whole[1:3]])["choices"][0]
    assert (stopped["message"]["content"], stopped["finish_reason"]) == (whole[:1], "stop")
    cut = server.chat(temperature=0, max_tokens=1)
    assert cut["choices"][0]["finish_reason"] == "length" and cut["usage"]["completion_tokens"] == 1


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Host": "evil"}, 403, "bad_host"),
        ({"Host": "127.0.0.1.evil.example"}, 403, "bad_host"),
        ({"Host": "x:99999"}, 403, "bad_host"),
        ({"Host": "127.0.0.1:99999"}, 403, "bad_host"),
        ({"Host": "evil@localhost"}, 403, "bad_host"),
        ({"Origin": "https://evil.example"}, 403, "bad_origin"),
        ({"Origin": "null"}, 403, "bad_origin"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "bad_origin"),
        ({"Content-Type": "text/plain"}, 415, None),
        ({"Content-Encoding": "gzip"}, 415, None),
        ({"Authorization": "Bearer sk-other"}, 401, "invalid_api_key"),
        ({"Authorization": ""}, 401, "invalid_api_key"),
        ({"Authorization": "Bearer \xff"}, 401, "invalid_api_key"),
    ],
)
def test_strangers_are_refused(server: Served, headers: dict[str, str], status: int, code: str | None) -> None:
    found, body = server.ask("chat/completions", QUESTION, **headers)
    assert (found, json.loads(body)["error"]["code"]) == (status, code)


def _raw(
    server: Served, method: str, path: str, *headers: tuple[str, str], host: str = ""
) -> tuple[int, dict[str, str]]:
    """Status and head of the answer to a request with these headers alone."""
    connection = http.client.HTTPConnection(host or server.host, server.port, timeout=60)
    with contextlib.closing(connection):
        connection.putrequest(method, path)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://tauri.localhost", "http://[::1]:80"])
def test_a_page_of_this_computer_may_ask_and_read_with_the_token(server: Served, origin: str) -> None:
    page = ("Origin", origin), ("Sec-Fetch-Site", "cross-site")
    status, head = _raw(server, "OPTIONS", "/v1/chat/completions", *page)
    assert status == 204 and head["access-control-allow-origin"] == origin
    assert {"authorization", "content-type"} <= set(head["access-control-allow-headers"].lower().split(", "))
    status, head = _raw(server, "GET", "/v1/models", *page, ("Authorization", f"Bearer {server.token}"))
    assert (status, head["access-control-allow-origin"]) == (200, origin)
    assert _raw(server, "GET", "/v1/models", *page)[0] == 401


def test_a_page_from_elsewhere_is_told_of_no_one_but_its_owner(server: Served) -> None:
    for method in ("OPTIONS", "GET"):
        status, head = _raw(server, method, "/v1/models", ("Origin", "app://obsidian.md"))
        assert status == 403 and "access-control-allow-origin" not in head


def test_what_the_owner_allows_may_ask(tmp_path: Path) -> None:
    with served(tmp_path, "--allow", "app://obsidian.md", "--allow", "host.docker.internal") as server:
        page, token = ("Origin", "app://obsidian.md"), ("Authorization", f"Bearer {server.token}")
        status, head = _raw(server, "GET", "/v1/models", page, token)
        assert (status, head["access-control-allow-origin"]) == (200, "app://obsidian.md")
        assert server.ask("models", Host=f"host.docker.internal:{server.port}")[0] == 200
        assert server.ask("models", Host="other.docker.internal")[0] == 403


def test_localhost_is_answered_however_it_is_looked_up(server: Served) -> None:
    if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("this computer has no IPv6")
    token = ("Authorization", f"Bearer {server.token}")
    assert _raw(server, "GET", "/v1/models", token, host="::1")[0] == 200


@pytest.mark.long
def test_a_line_that_asks_now_and_then_is_kept(server: Served) -> None:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    with contextlib.closing(connection):
        for pause in (MAX_HEAD_S + 8, MAX_HEAD_S + 8, 0):
            connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {server.token}"})
            line = connection.sock
            assert connection.getresponse().read()
            assert connection.sock is line
            time.sleep(pause)


@pytest.mark.parametrize(
    ("body", "status", "param", "code"),
    [
        (b"{", 400, None, None),
        (b"[" * 100_000, 400, None, None),
        (b" " * (MAX_BODY + 1), 413, None, None),
        ({**QUESTION, "model": "gpt-4o"}, 404, "model", "model_not_found"),
        ({**QUESTION, "max_tokens": 0}, 400, "max_tokens", None),
        ({**QUESTION, "temperature": 3}, 400, "temperature", None),
        ({**QUESTION, "tools": [{}], "tool_choice": "required"}, 400, "tool_choice", None),
        ({**QUESTION, "response_format": {"type": "xml"}}, 400, "response_format", None),
        ({**QUESTION, "response_format": {"type": "json_schema"}}, 400, "response_format", None),
        ({**QUESTION, "structured_outputs": {"choice": []}}, 400, "structured_outputs", None),
        ({**QUESTION, "structured_outputs": {"regex": "a"}}, 400, "structured_outputs", None),
        ({**QUESTION, "max_tokens": 10**30}, 400, "max_tokens", None),
        ({**QUESTION, "messages": []}, 400, "messages", None),
        (
            {**QUESTION, "messages": [{"role": "user", "content": "1 " * 4000}]},
            400,
            None,
            "context_length_exceeded",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_as_openai_does(
    server: Served, body: Any, status: int, param: str | None, code: str | None
) -> None:
    found, said = server.ask("chat/completions", body)
    error = json.loads(said)["error"]
    assert (found, error["param"], error["code"]) == (status, param, code), error
    assert error["type"] == "invalid_request_error" and error["message"]


@pytest.mark.parametrize(
    "prompt", [["a", 5], [5, "a"], [[1], ""], [], [[]], [10**30], [-1], [10**6], ["a"] * 65]
)
def test_a_prompt_that_is_none_is_refused_and_the_model_stays(server: Served, prompt: Any) -> None:
    server.chat(max_tokens=1)
    model = server.model()
    status, _ = server.ask("completions", {"model": "starter", "prompt": prompt, "max_tokens": 1})
    assert status == 400 and server.chat(max_tokens=1) and server.model() == model


def test_an_answer_has_the_form_that_was_asked_for(server: Served) -> None:
    wanted = {
        "type": "object",
        "properties": {"sum": {"type": "integer"}, "sure": {"enum": ["yes", "no"]}},
        "required": ["sum", "sure"],
    }
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": wanted, "strict": True}}
    status, body = server.ask("chat/completions", QUESTION | {"response_format": form, "seed": 3})
    if status == 400:  # no llama.cpp here
        assert "llama.cpp" in json.loads(body)["error"]["message"]
        pytest.skip(json.loads(body)["error"]["message"])
    found = json.loads(text(json.loads(body))[0])
    assert isinstance(found["sum"], int) and found["sure"] in ("yes", "no")
    events = server.stream(structured_outputs={"choice": ["blue", "green"]}, n=2, seed=8)
    said = ["", ""]
    for choice in (choice for event in events for choice in event["choices"]):
        said[choice["index"]] += choice["delta"].get("content") or ""
    assert set(said) <= {"blue", "green"}


def test_more_connections_than_there_may_be_are_closed_and_a_newcomer_is_answered(server: Served) -> None:
    opened = [socket.create_connection((server.host, server.port)) for _ in range(MAX_CONNECTIONS + 40)]
    try:
        refused = 0
        while refused < 40:  # else the test's own time ends it
            for one in select.select(opened, [], [], 60)[0]:
                opened.remove(one)
                one.close()
                refused += 1
        assert server.chat(max_tokens=1)["choices"]
    finally:
        for one in opened:
            one.close()


def opened_stream(server: Served) -> socket.socket:
    body = json.dumps({"model": "starter", "prompt": "1", "max_tokens": 400, "n": 8, "stream": True}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
    one = socket.create_connection((server.host, server.port))
    one.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    return one


def test_a_stop_ends_the_streams_that_are_open(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.chat(max_tokens=1)
        model, streams = server.model(), [opened_stream(server) for _ in range(20)]
        assert streams[0].recv(4).startswith(b"HTTP")
    assert not psutil.pid_exists(model), "and the server ended with 0"


def test_a_client_that_reads_nothing_and_one_that_leaves_keep_no_one_waiting(server: Served) -> None:
    idle = []
    for leaves in (False, True, False, True, *([True] * 60)):
        one = opened_stream(server)
        one.close() if leaves else idle.append(one)
    assert text(server.chat(max_tokens=4))
    for one in idle:
        one.close()


@pytest.mark.long
def test_a_node_of_the_same_home_rests_while_it_answers_and_goes_on(server: Served) -> None:
    node = Running("--home", server.home, "--families", "chain_sum", "--local", "2", "--probe-questions", "16")
    try:
        node.wait_for_kind("round")
        trainer = node.trainer()
        asked = time.time()
        while psutil.pid_exists(trainer):
            server.chat(max_tokens=2)
            assert time.time() < asked + 60, "the trainer still runs"
        node.wait_for(lambda event: event.get("sentence") == Reason.SERVING.sentence)
        node.wait_for_kind("round")
        assert server.process.poll() is None
    finally:
        node.stop()


@pytest.mark.long
def test_a_model_that_was_killed_is_loaded_again(server: Served) -> None:
    server.chat(max_tokens=1)
    killed = server.model()
    os.kill(killed, signal.SIGKILL)
    status = 503
    while status == 503:  # one that came before the death was seen hears that it was
        status, _ = server.ask("chat/completions", QUESTION)
    assert status == 200 and server.model() != killed


@pytest.mark.long
def test_no_model_outlives_a_server_that_was_killed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError), served(tmp_path) as server:
        server.chat(max_tokens=1)
        model = psutil.Process(server.model())
        server.process.kill()
        model.wait(60)
    assert not model.is_running()
