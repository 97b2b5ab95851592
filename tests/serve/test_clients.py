"""Clients that others wrote, each installed into an environment of its own, against the real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest

from tests.serve.served import QUESTION, Served, served

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

OPENAI = """
import json, openai
client = openai.OpenAI()
asked = dict(model="starter", messages=[{"role": "user", "content": "What is 12 + 7?"}], seed=4)
whole = client.chat.completions.create(**asked, logprobs=True, top_logprobs=3, n=2)
assert len(whole.choices) == 2 and whole.usage.completion_tokens > 0
assert len(whole.choices[0].logprobs.content[0].top_logprobs) == 3
single = client.chat.completions.create(**asked).choices[0]
stream = client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
chunks = list(stream)
text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
assert text == single.message.content, (text, single)
assert chunks[-1].usage.total_tokens > 0
left = client.chat.completions.create(**asked, stream=True)
next(iter(left)); left.close()
old = client.completions.create(model="starter", prompt="1+1=", max_tokens=4, logprobs=2)
assert old.choices[0].finish_reason in ("stop", "length") and old.choices[0].logprobs.tokens
assert [one.id for one in client.models.list()] == ["starter", "puzzles"]
failed = []
for wrong in (dict(model="gpt-4o"), dict(max_tokens=0)):
    try:
        client.chat.completions.create(**{**asked, **wrong})
    except openai.NotFoundError as error:
        failed.append(error.code)
    except openai.BadRequestError as error:
        failed.append(error.param)
try:
    openai.OpenAI(api_key="sk-wrong").models.list()
except openai.AuthenticationError as error:
    failed.append(error.code)
print(json.dumps(failed))
"""
LITELLM = """
import json, litellm
asked = dict(model="openai/starter", messages=[{"role": "user", "content": "What is 12 + 7?"}], temperature=0)
whole = litellm.completion(**asked)
stream = "".join(one.choices[0].delta.content or "" for one in litellm.completion(**asked, stream=True))
assert whole.choices[0].message.content == stream, (whole, stream)
try:
    litellm.completion(**{**asked, "model": "openai/other"})
except litellm.NotFoundError:
    print(json.dumps(["model_not_found"]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("home")) as found:
        yield found


def environment(folder: Path, *packages: str) -> Path:
    """The folder of programs of a fresh environment with these packages."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([programs / "python", "-m", "pip", "install", "-q", *packages], check=True, timeout=1200)
    return programs


def variables(server: Served, home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {
        **kept,
        "HOME": str(home),
        "OPENAI_API_KEY": server.token,
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_BASE": server.url,
    }


@pytest.mark.parametrize(
    ("package", "script", "refused"),
    [
        ("openai", OPENAI, ["model_not_found", "max_tokens", "invalid_api_key"]),
        ("litellm", LITELLM, ["model_not_found"]),
    ],
)
def test_a_library_asks_streams_and_understands_refusals(
    server: Served, tmp_path: Path, package: str, script: str, refused: list[str]
) -> None:
    python = environment(tmp_path / "environment", package) / "python"
    done = subprocess.run(
        [python, "-c", script], env=variables(server, tmp_path), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == refused


PAGE = """<pre id=said></pre><script>
const door = "%s", token = "%s", body = '%s', said = [];
const post = {method: "POST", body};
const tries = {
  read: [door + "/models"], token: [door + "/models", {headers: {Authorization: "Bearer " + token}}],
  json: [door + "/chat/completions", {...post, headers: {"Content-Type": "application/json"}}],
  form: [door + "/chat/completions", post], blind: [door + "/chat/completions", {...post, mode: "no-cors"}],
};
Promise.all(Object.entries(tries).map(async ([name, [url, how]]) => {
  try { const got = await fetch(url, how); said.push(name + ":" + got.type + await got.text()); }
  catch (error) { said.push(name + ":refused"); }
})).then(() => document.getElementById("said").textContent = said.sort().join(" ") + " END");
</script>"""
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is here")
def test_a_page_in_a_browser_neither_reads_nor_starts_an_answer(tmp_path: Path) -> None:
    """Against a door that asks for no token: where the page comes from alone keeps it out."""
    with served(tmp_path / "home", "--no-token") as door:

        class Site(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write((PAGE % (door.url, "sk-any", json.dumps(QUESTION))).encode())

        with HTTPServer(("127.0.0.1", 0), Site) as site:
            threading.Thread(target=site.serve_forever, daemon=True).start()
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
            options += ["--disable-background-networking", f"--user-data-dir={tmp_path / 'browser'}"]
            options += [
                "--virtual-time-budget=60000",
                "--dump-dom",
                f"http://evil.localhost:{site.server_port}/",
            ]
            done = subprocess.run([str(BROWSER), *options], capture_output=True, text=True, timeout=600)
            site.shutdown()
        said = "blind:refused form:refused json:refused read:refused token:refused END"
        assert said in done.stdout.replace("blind:opaque", "blind:refused"), done.stdout + done.stderr[-2000:]
        assert not psutil.Process(door.process.pid).children(), "a page started the model"
        assert door.chat(max_tokens=1)["choices"]


def test_ten_thousand_connections_are_bounded_and_a_request_is_still_answered(server: Served) -> None:
    script = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (12000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
host, port = sys.argv[1], int(sys.argv[2])
opened = []
for _ in range(10_000):
    try:
        opened.append(socket.create_connection((host, port), timeout=5))
    except OSError:
        pass
print(len(opened), flush=True)
sys.stdin.read()
"""
    server.chat(max_tokens=1)
    crowd = subprocess.Popen(
        [sys.executable, "-c", script, server.host, str(server.port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert crowd.stdout is not None and int(crowd.stdout.readline()) > 5_000
        process = psutil.Process(server.process.pid)
        assert process.num_fds() < 600
    finally:
        crowd.communicate("")
    assert server.chat(max_tokens=1)["choices"]
