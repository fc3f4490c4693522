"""A small server with an OpenAI-compatible completions endpoint, around a Hugging Face folder.

    python completions_server.py FOLDER

It listens on a free port of this machine, which it prints, and wants the bearer token of the
environment variable ``SERVER_TOKEN``. It shares no code with what is tested: the library's own
model reads whole texts.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

import torch
import transformers

TOKEN = os.environ.get("SERVER_TOKEN", "")
FOLDER = sys.argv[1]
model = transformers.AutoModelForCausalLM.from_pretrained(FOLDER).eval()
tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)


@torch.no_grad()
def completed(text):
    """The tokens of a text and one more, with their log-probabilities."""
    ids = tokenizer(text)["input_ids"]
    log_probs = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    more = int(log_probs[-1].argmax())
    costs = [log_probs[i, token].item() for i, token in enumerate([*ids[1:], more])]
    return [tokenizer.convert_ids_to_tokens(i) for i in (*ids, more)], [None, *costs], len(ids)


class Completions(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if TOKEN and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.answer(401, {"error": "no such token"})
        if self.path != "/v1/completions" or body["model"] != "tiny":
            return self.answer(404, {"error": "no such model"})
        if not (body["echo"] and body["logprobs"] and body["max_tokens"] == 1):
            return self.answer(400, {"error": "not supported"})
        read = [completed(text) for text in body["prompt"]]
        choices = [
            {"index": i, "logprobs": {"tokens": tokens, "token_logprobs": costs}, "text": "..."}
            for i, (tokens, costs, _) in enumerate(read)
        ]
        usage = {"prompt_tokens": sum(n for *_, n in read), "completion_tokens": len(read)}
        return self.answer(200, {"choices": choices[::-1], "usage": usage})

    def answer(self, code, content):
        sent = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Completions)
print(server.server_port, flush=True)
server.serve_forever()
