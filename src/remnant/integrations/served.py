"""Models behind an OpenAI-compatible completions endpoint, such as vLLM's: costs of whole texts.

A tensor-parallel model, or one that only a server can hold, is asked for the log-probabilities of
texts that it is given (``echo`` with ``logprobs``). That is enough for sampled exposure and for a
beam search. It is not enough for exact ranks and certificates, which need the probabilities of all
next tokens in a known precision.

Requests go to this machine only, unless another is allowed. The bearer token comes from an
environment variable; it is in no error, record or output. Neither is what a server says, since that
may repeat a secret.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from email.message import Message
from typing import IO, Any

import numpy as np

from remnant.errors import InvalidInput, NotEnoughEvidence, UnsupportedModel, require
from remnant.probes.counted_model import BITS, OutOfTime
from remnant.probes.sequences import TextCosts
from remnant.progress import Progress

TOKEN_VARIABLE = "REMNANT_SERVED_TOKEN"
_ANSWER = 1 << 28  # bytes of an answer that are read at most
_ANSWER_LEAST = 1 << 20
_ANSWER_FACTOR = 1 << 10  # bytes of an answer for each byte of a request
_SHORTEST = 1e-3  # seconds that a request is given at least
_LONGEST_WAIT = 30.0  # seconds between two attempts
_ROUNDING = 1e-3  # nats by which a log-probability may be above 0
_LOWEST = -1e300  # nats; NaN and infinities are not above it
_AGAIN = "Look at its log, or start it again."
_NEEDED = (
    "It must offer /v1/completions with echo and logprobs for the tokens of prompts, as vLLM does."
)


class ServerError(NotEnoughEvidence):
    """A server could not be asked, or gave no usable answer."""


class ServedModel:
    """A model that a server holds, asked for the costs of whole texts.

    Args:
        url: Of the server, such as ``http://127.0.0.1:8000``, with or without ``/v1``.
        model: The name under which it serves the model.
        token_variable: Environment variable with the bearer token; by default
            ``REMNANT_SERVED_TOKEN``, if that is set.
        allow_remote: Whether requests may leave this machine.
        texts_at_once: Texts in one request.
        timeout: Seconds for a request, with its repetitions and the waits between them.
        max_seconds: Seconds for all requests together, from when this is made; None for no limit.
        attempts: How often a request is made that meets a busy or broken server.
        wait: Sleeps for so many seconds.

    Guarantees:
        * A request ends by its deadline, whatever the server does: hang, send a byte from time to
          time, or never stop.
        * No redirect is followed, and no proxy is used for a server on this machine.
        * The token is sent in the header of requests to ``url``, and is nowhere else.

    Raises:
        InvalidInput: The address is not one of this machine, or holds a password; the variable is
            not set, or its value is no token; all faults of settings at once.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        token_variable: str | None = None,
        allow_remote: bool = False,
        texts_at_once: int = 32,
        timeout: float = 120.0,
        max_seconds: float | None = None,
        attempts: int = 4,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        faults = [] if model else ["model is empty; name the model as the server does"]
        for name, number in (("texts_at_once", texts_at_once), ("attempts", attempts)):
            if number < 1:
                faults.append(f"{name}={number} is less than 1")
        for name, seconds in (("timeout", timeout), ("max_seconds", max_seconds)):
            if seconds is not None and not 0 < seconds <= threading.TIMEOUT_MAX:
                faults.append(f"{name}={seconds:g} is not a number of seconds above 0")
        require(faults)
        self.url, local = _checked_url(url, allow_remote=allow_remote)
        self.name = model
        self._texts_at_once, self._timeout = texts_at_once, timeout
        self._attempts, self._wait = attempts, wait
        self._max_seconds, self._scored = max_seconds, 0
        self._ends = None if max_seconds is None else time.monotonic() + max_seconds
        self._token = _read_token(token_variable)
        if self._token and not local and self.url.startswith("http:"):
            raise InvalidInput(
                f"url={self.url!r} would send the token in clear text to another machine.",
                hint="Use https, or a tunnel to this machine.",
            )
        proxies = [urllib.request.ProxyHandler({})] if local else []
        handlers = (*proxies, _NoRedirect(), _Http(), _Https())
        self._opener = urllib.request.build_opener(*handlers)

    def __repr__(self) -> str:
        return f"ServedModel({self.url!r}, {self.name!r})"

    def text_costs(
        self,
        *,
        prefix: str,
        texts: Sequence[str],
        prefix_tokens: int | None = None,
        progress: Progress | None = None,
    ) -> TextCosts:
        """Return the cost of whole texts from the end of ``prefix`` on; see ``probes.text_costs``.

        ``nodes`` of the result counts tokens that the server read.

        Raises:
            ServerError: The server cannot be reached, refuses, or fails.
            OutOfTime: ``max_seconds`` are over.
            UnsupportedModel: Its answers are not log-probabilities of the texts.
            InvalidInput: A text does not begin with the prefix, or the prefix is empty and nothing
                comes before the first token.
        """
        if not all(text.startswith(prefix) for text in texts):
            raise InvalidInput("A text does not begin with the prefix.")
        asked = [*([prefix] if prefix else []), *texts]
        answers: list[tuple[list[str], list[float | None]]] = []
        for at in range(0, len(asked), self._texts_at_once):
            if self._ends is not None and time.monotonic() >= self._ends:
                raise self._out_of_time()
            some = asked[at : at + self._texts_at_once]
            answers += self._ask(some)
            self._scored += len(some)
            if progress is not None:
                progress("texts", min(len(answers), len(texts)), len(texts))
        shared = answers.pop(0)[0] if prefix else []
        common = len(shared)
        for tokens, _ in answers:
            while tokens[:common] != shared[:common]:
                common -= 1
        if prefix_tokens is not None:
            common = min(common, prefix_tokens)
        bits = [_cost(costs[common:]) for _, costs in answers]
        read = sum(len(tokens) for tokens, _ in answers) + len(shared)
        return TextCosts(bits=np.array(bits), prefix_tokens=common, nodes=read)

    def _ask(self, texts: Sequence[str]) -> list[tuple[list[str], list[float | None]]]:
        """Return the tokens of each text and their log-probabilities, None for the first."""
        body = {
            "model": self.name,
            "prompt": list(texts),
            "max_tokens": 1,  # some servers refuse 0, and others take it for no limit
            "temperature": 0,
            "echo": True,
            "logprobs": 1,
        }
        return _parsed(self._post(json.dumps(body).encode()), len(texts))

    def _post(self, body: bytes) -> Any:
        """Return the decoded answer; a server that is busy or broken is asked again."""
        ends = time.monotonic() + self._timeout
        if self._ends is not None:
            ends = min(ends, self._ends)
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._post_once(body, ends, attempt)
            except _Again as again:
                pause = min(max(again.after, 0.25 * 2**attempt), _LONGEST_WAIT)
                if attempt == self._attempts or time.monotonic() + pause >= ends:
                    raise again.fault from None
                self._wait(pause)

    def _out_of_time(self) -> OutOfTime:
        return OutOfTime(
            f"The time limit of {self._max_seconds:g} s ended after {self._scored} texts were "
            "scored.",
            hint="Ask for fewer texts, or allow more seconds.",
        )

    def _post_once(self, body: bytes, ends: float, attempt: int) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = _Request(f"{self.url}/v1/completions", data=body, headers=headers, method="POST")
        most = min(_ANSWER, _ANSWER_LEAST + _ANSWER_FACTOR * len(body))
        try:
            content = self._read(request, most, ends)
        except urllib.error.HTTPError as refused:
            refused.close()
            raise self._refusal(refused, attempt) from None
        except TimeoutError:
            raise self._too_late(ends) from None
        except urllib.error.URLError as refused:
            if isinstance(refused.reason, TimeoutError):
                raise self._too_late(ends) from None
            if isinstance(refused.reason, ssl.SSLError):
                raise ServerError(
                    f"{self.url} speaks no TLS, or has no certificate that this machine trusts.",
                    hint="Correct the address, or add its certificate to this machine's.",
                ) from None
            if isinstance(refused.reason, BrokenPipeError | ConnectionResetError):
                raise _Again(self._cut_short()) from None
            raise ServerError(
                f"No server answers at {self.url}.", hint="Start it, or correct the address."
            ) from None
        except (http.client.HTTPException, OSError, ValueError):
            raise _Again(self._cut_short()) from None
        if len(content) > most:
            raise ServerError(
                f"{self.url} sent more than {most >> 20} MiB as one answer.", hint=_NEEDED
            )
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise _Again(self._cut_short()) from None

    def _read(self, request: _Request, most: int, ends: float) -> bytes:
        """Return what the server answers, at most so many bytes and one more.

        The request is made by a thread of its own, and its connection is ended with the deadline: a
        server that sends a byte from time to time never lets a timeout of the socket pass.

        Raises:
            TimeoutError: The deadline is over.
        """
        ended: list[bytes | Exception] = []

        def ask() -> None:
            left = max(ends - time.monotonic(), _SHORTEST)
            try:
                with self._opener.open(request, timeout=left) as answer:
                    ended.append(answer.read(most + 1))
            except (OSError, http.client.HTTPException, ValueError, MemoryError) as fault:
                ended.append(fault)

        asking = threading.Thread(target=ask, daemon=True, name="remnant-served")
        asking.start()
        try:
            asking.join(max(ends - time.monotonic(), _SHORTEST))
        finally:
            over = asking.is_alive()
            if over:
                request.end()
        if over:
            raise TimeoutError
        if not ended:
            raise OSError
        if isinstance(ended[0], Exception):
            raise ended[0]
        return ended[0]

    def _too_late(self, ends: float) -> NotEnoughEvidence:
        if ends == self._ends:
            return self._out_of_time()
        return ServerError(
            f"{self.url} did not answer within {self._timeout:g} seconds.", hint=_AGAIN
        )

    def _cut_short(self) -> ServerError:
        return ServerError(
            f"{self.url} sent an answer that is cut short or is no JSON.", hint=_AGAIN
        )

    def _refusal(self, refused: urllib.error.HTTPError, attempt: int) -> Exception:
        code = refused.code
        in_a_row = f", {attempt} times in a row" if attempt > 1 else ""
        if code in (401, 403):
            needed = "the token was refused" if self._token else "it asks for a token"
            return ServerError(
                f"{self.url} refused the request ({code}): {needed}.",
                hint=f"Put the bearer token into the environment variable {TOKEN_VARIABLE}.",
            )
        if code == 404:
            return ServerError(
                f"{self.url} has no /v1/completions, or serves no model called {self.name!r} "
                "(404).",
                hint="Look at /v1/models for the names that it knows.",
            )
        if code == 429:
            fault = ServerError(
                f"{self.url} is too busy (429){in_a_row}.",
                hint="Try again later, or ask for fewer texts.",
            )
            return _Again(fault, after=_seconds(refused.headers))
        if code >= 500:
            return _Again(ServerError(f"{self.url} failed ({code}){in_a_row}.", hint=_AGAIN))
        return ServerError(f"{self.url} refused the request ({code}).", hint=_NEEDED)


class _Again(Exception):
    """A fault that may pass: the request is made again."""

    def __init__(self, fault: ServerError, *, after: float = 0.0) -> None:
        super().__init__()
        self.fault, self.after = fault, after


class _Request(urllib.request.Request):
    """A request whose connection can be ended from another thread."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sockets: list[socket.socket] = []

    def end(self) -> None:
        """End the connection: whoever waits for it gets an error."""
        for opened in self.sockets:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)


class _Connection(http.client.HTTPConnection):
    def __init__(
        self, *arguments: Any, sockets: list[socket.socket] | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._sockets = [] if sockets is None else sockets

    def connect(self) -> None:
        super().connect()
        self._sockets.append(self.sock)


class _SecureConnection(http.client.HTTPSConnection):
    def __init__(
        self, *arguments: Any, sockets: list[socket.socket] | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._sockets = [] if sockets is None else sockets

    def connect(self) -> None:
        super().connect()
        self._sockets.append(self.sock)


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_Connection, req, sockets=getattr(req, "sockets", []))


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_SecureConnection, req, sockets=getattr(req, "sockets", []))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which could carry the token to another machine."""

    def http_error_302(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
    ) -> None:
        """Return None, without a look at the address: the redirect becomes an error."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _checked_url(url: str, *, allow_remote: bool) -> tuple[str, bool]:
    """Return the address without ``/v1``, and whether it is of this machine."""
    if not re.fullmatch(r"[!-~]+", url):  # anything else has no place in a request
        raise InvalidInput(
            "url holds blanks, control characters or characters that are not ASCII.",
            hint="Write these in percent encoding, such as %20 for a blank.",
        )
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urllib.parse.urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidInput(
            "url is no address of a server.", hint="Pass one such as http://127.0.0.1:8000."
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            "url holds a password, a query or a fragment, which would be recorded.",
            hint=f"Pass the address alone, and the token in {TOKEN_VARIABLE}.",
        )
    local = _is_loopback(host)
    if not local and not allow_remote:
        raise InvalidInput(
            f"url={url!r} is not on this machine, and texts with secrets would be sent there.",
            hint="Pass allow_remote=True if that machine may see them.",
        )
    return url.rstrip("/").removesuffix("/v1").rstrip("/"), local


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read_token(variable: str | None) -> str:
    name = TOKEN_VARIABLE if variable is None else variable
    try:
        token = os.environ.get(name, "").strip()
    except ValueError:  # no name of a variable
        token = ""
    if variable is not None and not token:
        # The name is not repeated: it may be the token itself.
        raise InvalidInput(
            "token_variable= names no environment variable that is set.",
            hint="Pass the name of a variable that holds the bearer token, and not the token.",
        )
    if any(not 32 < ord(character) < 127 for character in token):
        raise InvalidInput(
            f"The environment variable {name} holds no bearer token: it has blanks or characters "
            "that no header may have.",
            hint="Set it to the token alone.",
        )
    return token


def _seconds(headers: Message) -> float:
    """The seconds that a server asks to wait; 0 where it names none."""
    try:
        return max(0.0, float(headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0


def _parsed(answer: Any, count: int) -> list[tuple[list[str], list[float | None]]]:
    """Return the tokens and log-probabilities of each text of an answer.

    Raises:
        UnsupportedModel: They are not there, or are no log-probabilities.
    """
    try:
        choices = sorted(answer["choices"], key=lambda choice: choice["index"])
        usage = answer["usage"]
        prompt, made = usage["prompt_tokens"], usage.get("completion_tokens") or 0
        indices = [choice["index"] for choice in choices]
        read = [
            (choice["logprobs"]["tokens"], choice["logprobs"]["token_logprobs"])
            for choice in choices
        ]
        good = all(type(number) is int for number in (prompt, made, *indices)) and all(
            isinstance(part, list) for both in read for part in both
        )
    except (KeyError, TypeError, AttributeError):
        good = False
    if not good:
        raise UnsupportedModel(
            "The server's answer has no tokens, log-probabilities or usage.", hint=_NEEDED
        )
    entries = sum(len(costs) for _, costs in read)
    if indices != list(range(count)) or any(len(tokens) != len(costs) for tokens, costs in read):
        raise UnsupportedModel(
            f"The server answered {len(choices)} texts of {count}, or not as many "
            "log-probabilities as tokens.",
            hint=_NEEDED,
        )
    if made not in (0, count) or entries != prompt + made:
        raise UnsupportedModel(
            f"The server returned {entries} log-probabilities for {prompt} tokens of texts and "
            f"{made} that it added: not those of the texts.",
            hint=_NEEDED,
        )
    cut = made // count if count else 0
    texts = [(tokens[: len(tokens) - cut], costs[: len(costs) - cut]) for tokens, costs in read]
    for tokens, costs in texts:
        for place, cost in enumerate(costs):
            if not isinstance(tokens[place], str) or not (cost is None or _is_log(cost)):
                raise UnsupportedModel(
                    "The server returned as a log-probability what is no finite number, or is "
                    "above 0.",
                    hint="Check the model that it serves.",
                )
            if cost is None and place:
                raise UnsupportedModel(
                    "The server left out a log-probability in the middle of a text.", hint=_NEEDED
                )
    return texts


def _is_log(cost: Any) -> bool:
    number = isinstance(cost, int | float) and not isinstance(cost, bool)
    return number and _LOWEST <= cost <= _ROUNDING


def _cost(costs: Sequence[float | None]) -> float:
    """Return the cost of tokens in bits."""
    given = [cost for cost in costs if cost is not None]
    if len(given) < len(costs) or not costs:
        raise InvalidInput(
            "The server gives no log-probability for the first token of a text, and the secret "
            "begins there.",
            hint="Use a template that begins with a few words.",
        )
    return -sum(min(cost, 0.0) for cost in given) * BITS
