"""A server's faults are one sentence each, and none of them holds the token or a text."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from remnant import Template
from remnant.errors import InvalidInput, NotEnoughEvidence, UnsupportedModel
from remnant.integrations.served import ServedModel, ServerError
from remnant.models.protocols import TextScorer
from remnant.probes.counted_model import OutOfTime
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
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
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


def usage(tokens):
    return broken(usage={"prompt_tokens": tokens, "completion_tokens": 3})


def without_prompts(prompts):
    """llama.cpp's answer: the log-probabilities of what it added alone."""
    answer = good(prompts)
    for choice in answer["choices"]:
        choice["logprobs"] = {"tokens": ["x"], "token_logprobs": [-1.0]}
    return answer


NAN = [None, -1.0, -1.0, -1.0, float("nan"), -1.0, -1.0, -1.0]
ABOVE = [None, -1.0, -1.0, -1.0, 0.5, -1.0, -1.0, -1.0]
INFINITE = [None, -1.0, -1.0, -1.0, float("-inf"), -1.0, -1.0, -1.0]
HUGE = [None, -1.0, -1.0, -1.0, -(10**400), -1.0, -1.0, -1.0]
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
        (
            lambda p: good(["pin 111"] * 3, NAN),
            UnsupportedModel,
            "no finite number, or is above 0",
            1,
        ),
        (lambda p: good(["pin 111"] * 3, ABOVE), UnsupportedModel, "or is above 0", 1),
        (lambda p: good(["pin 111"] * 3, INFINITE), UnsupportedModel, "no finite number", 1),
        (lambda p: good(["pin 111"] * 3, HUGE), UnsupportedModel, "no finite number", 1),
        (lambda p: good(["pin 111"] * 3, [True] * 8), UnsupportedModel, "no finite number", 1),
        (lambda p: good(["pin 111"] * 3, ["-1"] * 8), UnsupportedModel, "no finite number", 1),
        (lambda p: good(["pin 111"] * 3, "-1.0 -2.0"), UnsupportedModel, "has no tokens", 1),
        (usage(float("inf")), UnsupportedModel, "has no tokens, log-probabilities or usage", 1),
        (usage(float("nan")), UnsupportedModel, "has no tokens, log-probabilities or usage", 1),
        (usage("18"), UnsupportedModel, "has no tokens, log-probabilities or usage", 1),
        (usage(10**400), UnsupportedModel, "not those of the texts", 1),
        (broken(choices={"a": 1}), UnsupportedModel, "has no tokens", 1),
        (broken(choices=[1, None]), UnsupportedModel, "has no tokens", 1),
        (b'{"choices": ' + b"9" * 5000 + b"}", ServerError, "cut short or is no JSON", 3),
        (b"\x1f\x8b\x08" + bytes(40), ServerError, "cut short or is no JSON", 3),
        (b"\xff\xfe{", ServerError, "cut short or is no JSON", 3),
        (b" " * (2 << 20), ServerError, "sent more than 1 MiB as one answer", 1),
        ((302, {"Location": "http://[::1"}), ServerError, "refused the request (302)", 1),
        ((307, {"Location": "http://127.0.0.1:1/"}), ServerError, "refused the request (307)", 1),
        ((308, {"Location": "\u00e9"}), ServerError, "refused the request (308)", 1),
        ((429, {"Retry-After": "1e999"}), ServerError, "too busy (429), 3 times in a row", 3),
        ((429, {"Retry-After": "nan"}), ServerError, "too busy (429), 3 times in a row", 3),
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
    model = make(lambda prompts: released.wait(10) or good(prompts), timeout=0.2)
    with pytest.raises(ServerError, match=r"did not answer within 0\.2 seconds"):
        costs(model)
    released.set()


HEAD = b"HTTP/1.1 200 OK\r\n"


def forever(begin, again):
    """A server that sends something, and then the same bytes again and again; or nothing."""

    def answer(connection, ended):
        connection.recv(1 << 16)
        connection.sendall(begin)
        while not ended.wait(0.01):
            if again:
                connection.sendall(again)

    return answer


@pytest.fixture
def listening():
    """Return a function that makes a server of plain sockets, and gives its address."""
    ended, threads = threading.Event(), []

    def serve(answer):
        server = socket.create_server(("127.0.0.1", 0))

        def run():
            with server, contextlib.suppress(OSError):
                server.settimeout(20)
                while not ended.is_set():
                    with server.accept()[0] as connection, contextlib.suppress(OSError):
                        answer(connection, ended)

        threads.append((threading.Thread(target=run, daemon=True), server))
        threads[-1][0].start()
        return f"http://127.0.0.1:{server.getsockname()[1]}"

    yield serve
    ended.set()
    for thread, server in threads:
        with contextlib.suppress(OSError):
            socket.create_connection(server.getsockname(), 1).close()
        thread.join(5)


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (b"", b""),  # hangs
        (b"", b"H"),  # drips its status line
        (HEAD, b"X: y\r\n"),
        (HEAD + b"X: ", b"y"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (HEAD + b"Content-Length: 100000\r\n\r\n", b" "),
        (HEAD + b"\r\n", b" "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (HEAD + b"Content-Length: 100000\r\n\r\n", b""),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_a_request_ends_by_its_deadline_whatever_the_server_does(listening, begin, again, whole):
    """It hangs, or drips a byte every 10 ms: less than any timeout of a socket."""
    limit = {"max_seconds": 0.3} if whole else {"timeout": 0.3}
    model = ServedModel(listening(forever(begin, again)), "tiny", wait=lambda _: None, **limit)
    began = time.monotonic()
    with pytest.raises(NotEnoughEvidence) as raised:
        costs(model)
    assert time.monotonic() - began < 10
    said = "time limit of 0.3 s" if whole else "did not answer within 0.3 seconds"
    refused = "cut short"  # more than a hundred headers, where the machine is quick
    assert said in str(raised.value) or (b"X: y" in again and refused in str(raised.value))


def test_a_server_without_tls_is_one_sentence(listening):
    url = listening(lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n"))
    with pytest.raises(ServerError, match="speaks no TLS"):
        costs(ServedModel(url.replace("http:", "https:"), "tiny", timeout=20))


def test_no_thread_is_left_behind_by_a_server_that_drips(listening):
    model = ServedModel(listening(forever(HEAD, b"X")), "tiny", timeout=0.2)
    with pytest.raises(ServerError, match="did not answer"):
        costs(model)
    asking = [thread for thread in threading.enumerate() if thread.name == "remnant-served"]
    for thread in asking:
        thread.join(10)
        assert not thread.is_alive()


def test_an_answer_without_end_is_not_kept(listening):
    begin = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n" % (1 << 20) + bytes(1 << 20) + b"\r\n"
    model = ServedModel(listening(forever(begin, chunk)), "tiny")
    with pytest.raises(ServerError, match="sent more than 1 MiB as one answer"):
        costs(model)


def test_the_time_of_all_requests_ends_between_them(make):
    model = make(lambda prompts: time.sleep(0.2) or good(prompts), texts_at_once=1, max_seconds=0.3)
    with pytest.raises(OutOfTime, match=r"time limit of 0\.3 s ended after 1 texts were scored"):
        costs(model)


def test_no_wait_is_longer_than_the_time_that_is_left(make):
    busy = [(429, {"Retry-After": "2"}), (429, {"Retry-After": "30"})]
    for limit in ({"timeout": 25}, {"max_seconds": 25}):
        with pytest.raises(ServerError, match=r"too busy \(429\), 2 times in a row"):
            costs(make(*busy, **limit))
    assert make.waits == [2.0, 2.0]
    with pytest.raises(ServerError, match=r"is too busy \(429\)\."):
        costs(make(busy[1], timeout=25))


def test_a_time_limit_of_a_walk_is_refused_where_there_is_no_walk(make):
    given = {"secrets": ["281"], "rng": np.random.default_rng(0), "max_seconds": 5}
    with pytest.raises(InvalidInput, match="max_seconds= is for a walk"):
        measure_exposure(make(), Template("pin {digits:3}"), **given)


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
        ("http://127.0.0.1/\u00e9", {}, "url holds blanks, control characters or characters that"),
        ("http://127.0.0.1/a b", {}, "url holds blanks"),
        ("http://127.0.0.1/\r\nX: y", {}, "url holds blanks"),
        ("http://\u0661\u0662.0.0.1", {}, "url holds blanks"),
        ("", {}, "url holds blanks"),
        ("http://127.0.0.1", {"token_variable": "NOT_SET"}, "names no environment variable that"),
        ("http://127.0.0.1", {"token_variable": TOKEN}, "names no environment variable that is"),
        ("http://127.0.0.1", {"token_variable": TOKEN + "\0"}, "names no environment variable"),
        ("http://127.0.0.1", {"token_variable": TOKEN + "\ud800"}, "names no environment variable"),
        ("http://127.0.0.1", {"timeout": 0, "attempts": 0}, "attempts=0 is less than 1; timeout=0"),
        ("http://127.0.0.1", {"timeout": 1e300}, "timeout=1e+300 is not a number of seconds"),
        ("http://127.0.0.1", {"max_seconds": float("nan")}, "max_seconds=nan is not a number"),
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
