"""A server's faults are one sentence each, and none of them holds the token or a text."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from remnant import Template
from remnant.errors import InvalidInput, UnsupportedModel
from remnant.integrations.served import ServedModel, ServerError
from remnant.models.protocols import TextScorer
from remnant.search.text_beam import text_beam
from remnant.studies.exposure.audit import measure_exposure

TOKEN, SECRET = "a-token-that-nobody-may-see", "281"


def good(prompts, costs=None, **changes):
    """The answer to prompts: a token a character, each of which costs one bit or its digit."""
    choices = []
    for index, text in enumerate(prompts):
        tokens = [*text, "x"]
        given = costs or [
            None if i == 0 else -(int(c) + 1.0) * np.log(2.0) if c.isdigit() else -np.log(2.0)
            for i, c in enumerate(tokens)
        ]
        logprobs = {"tokens": tokens, "token_logprobs": given}
        choices.append({"index": index, "logprobs": logprobs})
    usage = {"prompt_tokens": sum(map(len, prompts)), "completion_tokens": len(prompts)}
    return {"choices": choices, "usage": usage, **changes}


class Scripted(BaseHTTPRequestHandler):
    """Answers as the list of the server says: a code with headers, raw bytes, or a function."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers.get("Authorization"), body))
        script = self.server.script
        step = script.pop(0) if len(script) > 1 else script[0]
        code, content, headers = 200, b"", {}
        if isinstance(step, int):
            code = step
        elif isinstance(step, tuple):
            code, headers = step
        elif isinstance(step, bytes):
            content = step
        else:
            content = json.dumps(step(body["prompt"])).encode()
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        longer = 100 if content == b'{"choices"' else 0  # the connection ends before the answer
        self.send_header("Content-Length", str(len(content) + longer))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Quiet(HTTPServer):
    def handle_error(self, *_):
        """A client that gave up is no news."""


@pytest.fixture
def server():
    made = Quiet(("127.0.0.1", 0), Scripted)
    made.script, made.asked = [good], []
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def make(server, monkeypatch):
    """Return a function that makes a model of the server, and the waits between attempts."""
    monkeypatch.setenv("REMNANT_SERVED_TOKEN", TOKEN)
    waits = []

    def one(*script, **options):
        server.script = list(script) or [good]
        url = f"http://127.0.0.1:{server.server_port}"
        return ServedModel(url, "tiny", wait=waits.append, **options)

    one.waits = waits
    return one


def costs(model, texts=("pin 281", "pin 104")):
    return model.text_costs(prefix="pin ", texts=list(texts))


def test_costs_begin_after_the_prefix(make, server):
    model = make(texts_at_once=2)
    assert isinstance(model, TextScorer)
    found = costs(model)
    assert found.bits.tolist() == pytest.approx([14.0, 8.0])
    assert found.prefix_tokens == 4
    assert [len(body["prompt"]) for _, _, body in server.asked] == [2, 1]
    path, token, body = server.asked[0]
    assert (path, token) == ("/v1/completions", f"Bearer {TOKEN}")
    assert (body["echo"], body["logprobs"], body["temperature"]) == (True, 1, 0)
    assert TOKEN not in repr(model)


def test_a_tokenizer_that_joins_characters_begins_earlier(make):
    def joined(prompts):
        answer = good(prompts)
        for choice, text in zip(answer["choices"], prompts, strict=True):
            if text != "pin ":
                tokens = choice["logprobs"]["tokens"]
                choice["logprobs"]["tokens"] = [*tokens[:3], " 2", "", *tokens[5:]]
        return answer

    found = costs(make(joined), ["pin 28", "pin 29"])
    assert found.prefix_tokens == 3
    assert found.bits.tolist() == pytest.approx([13.0, 14.0])


def broken(**changes):
    return lambda prompts: good(prompts, **changes)


def without_prompts(prompts):
    """llama.cpp's answer: the log-probabilities of what it added alone."""
    answer = good(prompts)
    for choice in answer["choices"]:
        choice["logprobs"] = {"tokens": ["x"], "token_logprobs": [-1.0]}
    return answer


NAN = [None, -1.0, -1.0, -1.0, float("nan"), -1.0, -1.0, -1.0]
ABOVE = [None, -1.0, -1.0, -1.0, 0.5, -1.0, -1.0, -1.0]
MIDDLE = [None, -1.0, -1.0, -1.0, None, -1.0, -1.0, -1.0]


@pytest.mark.parametrize(
    ("step", "kind", "words", "times"),
    [
        (401, ServerError, "refused the request (401): the token was refused", 1),
        (403, ServerError, "refused the request (403)", 1),
        (404, ServerError, "serves no model called 'tiny' (404)", 1),
        (400, ServerError, "refused the request (400)", 1),
        (429, ServerError, "is too busy (429), 3 times in a row", 3),
        (500, ServerError, "failed (500), 3 times", 3),
        (503, ServerError, "failed (503), 3 times", 3),
        ((302, {"Location": "http://127.0.0.1:1/"}), ServerError, "refused the request (302)", 1),
        (b'{"choices"', ServerError, "cut short or is no JSON", 3),
        (b"<html>", ServerError, "cut short or is no JSON", 3),
        (b"[" * 100_000, ServerError, "cut short or is no JSON", 3),
        (b"[]", UnsupportedModel, "has no tokens, log-probabilities or usage", 1),
        (broken(choices=[]), UnsupportedModel, "answered 0 texts of 3", 1),
        (broken(usage=None), UnsupportedModel, "has no tokens, log-probabilities or usage", 1),
        (without_prompts, UnsupportedModel, "not those of the texts", 1),
        (lambda p: good(["pin 111"] * 3, NAN), UnsupportedModel, "NaN, or a number above 0", 1),
        (lambda p: good(["pin 111"] * 3, ABOVE), UnsupportedModel, "NaN, or a number above 0", 1),
        (lambda p: good(["pin 111"] * 3, MIDDLE), UnsupportedModel, "left out a log-probab", 1),
    ],
)
def test_each_fault_is_one_sentence(make, server, step, kind, words, times):
    with pytest.raises(kind) as raised:
        costs(make(step, attempts=3))
    said = f"{raised.value.message} {raised.value.hint}"
    assert words in said
    assert TOKEN not in said
    assert SECRET not in said
    assert raised.value.__cause__ is None
    assert len(server.asked) == times


def test_a_fault_that_passes_is_waited_for(make, server):
    model = make((429, {"Retry-After": "7"}), 503, b'{"choices"', good)
    assert costs(model).bits.tolist() == pytest.approx([14.0, 8.0])
    assert make.waits == [7.0, 1.0, 2.0]


def test_a_server_that_does_not_answer_in_time_is_one_sentence(make):
    released = threading.Event()
    model = make(lambda prompts: released.wait(10) or good(prompts), timeout=0.2, attempts=1)
    with pytest.raises(ServerError, match=r"did not answer within 0\.2 seconds"):
        costs(model)
    released.set()


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("ftp://127.0.0.1", {}, "url is no address of a server"),
        ("127.0.0.1:8000", {}, "url is no address of a server"),
        ("http://127.0.0.1:99999", {}, "url is no address of a server"),
        ("http://user:pass@127.0.0.1", {}, "url holds a password"),
        ("http://192.168.0.4:80", {}, "is not on this machine"),
        ("http://example.org", {}, "is not on this machine"),
        ("http://127.0.0.1.example.org", {}, "is not on this machine"),
        ("http://example.org", {"allow_remote": True}, "would send the token in clear text"),
        ("http://127.0.0.1", {"token_variable": "NOT_SET"}, "token_variable='NOT_SET' is not set"),
        ("http://127.0.0.1", {"timeout": 0, "attempts": 0}, "attempts=0 is less than 1; timeout=0"),
    ],
)
def test_servers_that_may_not_be_asked(monkeypatch, url, options, words):
    monkeypatch.setenv("REMNANT_SERVED_TOKEN", TOKEN)
    with pytest.raises(InvalidInput) as raised:
        ServedModel(url, "tiny", **options)
    assert words in str(raised.value)
    assert TOKEN not in str(raised.value)


def test_a_value_that_is_no_token_is_not_repeated(monkeypatch):
    monkeypatch.setenv("REMNANT_SERVED_TOKEN", "two\nlines-of-a-secret")
    with pytest.raises(InvalidInput, match="holds no bearer token") as raised:
        ServedModel("http://localhost:1", "tiny")
    assert "lines-of-a-secret" not in str(raised.value)


def test_another_machine_is_asked_by_https_where_it_is_allowed(monkeypatch):
    monkeypatch.setenv("REMNANT_SERVED_TOKEN", TOKEN)
    model = ServedModel("https://example.org/v1/", "m", allow_remote=True)
    assert model.url == "https://example.org"


def test_a_template_without_a_beginning_is_refused(make):
    with pytest.raises(InvalidInput, match="first token of a text"):
        make().text_costs(prefix="", texts=["281"])


def test_a_beam_finds_the_cheapest_secret(make):
    template = Template("pin {digits:2}-{choice:a|b}.")
    found = text_beam(make(), template, width=3, top=2)
    assert found.certified is False
    assert found.candidates[0][0].startswith("00-")
    assert [bits for _, bits in found.candidates] == pytest.approx([5.0, 5.0])


def test_costs_that_are_not_repeated_widen_the_intervals(make):
    rng = np.random.default_rng(0)

    def noisy(prompts):
        answer = good(prompts)
        for choice in answer["choices"]:
            given = choice["logprobs"]["token_logprobs"]
            given[-2] -= float(rng.random() * 0.3)
        return answer

    asked = {"secrets": ["281"], "references": 200, "fit": False}
    steady, shaky = (
        measure_exposure(
            make(script), Template("pin {digits:3}"), rng=np.random.default_rng(1), **asked
        )
        for script in (good, noisy)
    )
    assert steady.arithmetic.worst == 0
    assert "differ by nothing" in steady.arithmetic.sentence
    assert 0 < shaky.arithmetic.worst < 0.5
    assert "Intervals allow for" in shaky.arithmetic.sentence
    assert shaky.each[0].low < steady.each[0].low < steady.each[0].high < shaky.each[0].high
    assert steady.method == "sampled"
