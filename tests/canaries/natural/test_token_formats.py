"""Each format of today is found in synthetic text, and what only looks like it is not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from remnant.canaries.natural import find_secrets, scan_files
from remnant.canaries.natural.keys import FORMATS, find_keys

from .tokens import BASE64, TOKENS, drawn, pem

SALT = b"0123456789abcdef"
AROUND = {
    "prose": ("use the key ", " from now on.\n"),
    "code": ('client = Client(key="', '")\n'),
    "settings": ("SERVICE_KEY=", "\n"),
    "exported": ("export SERVICE_KEY=", "\nOTHER=1\n"),
    "yaml": ("  key: ", "\n"),
    "sentence": ("The key is ", ". It is new."),
    "escaped": ('{"text": "', '\\n"}'),
    "alone": ("", ""),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", TOKENS)
def test_each_format_is_found_whole_whatever_is_around_it(name, around):
    service, make, known = TOKENS[name]
    before, after = AROUND[around]
    for seed in range(20):
        token = make(np.random.default_rng(seed))
        (match,) = find_keys(f"{before}{token}{after}")
        assert (match.kind, match.service, match.value) == ("key", service, token)
        assert (match.start, match.known) == (len(before), known)


@pytest.mark.parametrize("name", TOKENS)
def test_hardly_a_drawn_token_is_missed(name):
    _, make, _ = TOKENS[name]
    rng = np.random.default_rng(7)
    tokens = [make(rng) for _ in range(1000)]
    found = {match.value for match in find_keys("\n".join(tokens))}
    assert len(found & set(tokens)) >= 998


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_inside_a_longer_word_and_a_placeholder_are_none(name):
    _, make, known = TOKENS[name]
    token = make(np.random.default_rng(1))
    if name != "slack webhook":
        assert list(find_keys(f"q{token}")) == []
    placeholder = token[:known] + "x" * (len(token) - known)
    assert list(find_keys(f"key = {placeholder}")) == []


def test_every_format_of_ours_has_a_token_in_these_tests():
    tokens = [make(np.random.default_rng(0)) for _, make, _ in TOKENS.values()]
    for form in FORMATS:
        assert any(form.pattern.fullmatch(token) for token in tokens), form.pattern.pattern
        assert any(anchor in token for token in tokens for anchor in form.anchors)


NAMED = [
    "AWS_SECRET_ACCESS_KEY={}",
    "aws_secret_access_key = {}",
    'awsSecretKey: "{}"',
    "export MY_AWS_SECRET={}",
    '"SecretAccessKey": "{}"',
    "Access key ID,Secret access key\n{id},{}",
    "{id} {}",
    "id: {id}\nsecret: {}\n",
]


@pytest.mark.parametrize("written", NAMED)
def test_secret_keys_of_aws_in_quotes_and_without(written):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        secret, key_id = drawn(rng, 40, BASE64), TOKENS["aws id"][1](rng)
        matches = find_secrets(written.replace("{id}", key_id).replace("{}", secret))
        assert secret in {match.value for match in matches if match.service == "AWS"}


@pytest.mark.parametrize(
    "text",
    [
        "the laws of the key are 0123456789abcdef0123456789abcdef01234567",
        "aws key commit 9f8b1c7de2a603547b1e9ac49f8b1c7de2a60354",
        "aws_secret_access_key = " + "A" * 40,
        "aws key " + "usr/local/lib/aws/keys/tools/access/list",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
        "AWS_ACCESS_KEY_ID=AK" + "IAIOSFODNN7EXAMPLE",
    ],
)
def test_digests_paths_and_documented_examples_are_no_keys_of_aws(text):
    assert [match.kind for match in find_secrets(text) if match.kind == "key"] == []


def test_forty_characters_that_nobody_names_are_no_key():
    secret = drawn(np.random.default_rng(0), 40, BASE64)
    assert list(find_keys(f"the value is {secret} today")) == []


@pytest.mark.parametrize("name", ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("size", [48, 1190, 2350, 5000])
def test_private_keys_are_found_as_whole_blocks(name, size):
    block = pem(np.random.default_rng(size), name=name, size=size)
    (match,) = find_keys(f"here it is:\n{block}\nand more")
    assert (match.service, match.start, match.end) == ("PEM", 12, 12 + len(block))
    assert match.known == len(block.split("\n")[0])
    assert match.tail == len(block.split("\n")[-1])
    body = match.value
    assert body == "".join(block.split("\n")[1:-1])


@pytest.mark.parametrize(
    "spelt",
    [
        lambda block: block.replace("\n", "\r\n"),
        lambda block: block.replace("\n", "\n    "),
        lambda block: json.dumps({"private_key": block}),
        lambda block: (
            "KEY = (\n" + "\n".join(f'    "{line}\\n"' for line in block.split("\n")) + ")"
        ),
        lambda block: "\n".join(f"> {line}" for line in block.split("\n")),
        lambda block: block.rsplit("\n", 1)[0],
        lambda block: block.replace(
            "-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B2C\n\n", 1
        ),
    ],
)
def test_a_private_key_is_the_same_however_its_lines_are_written(spelt):
    block = pem(np.random.default_rng(3))
    (plain,), (other,) = find_keys(block), find_keys(spelt(block))
    if "Proc-Type" in spelt(block):
        assert other.value.endswith(plain.value)
    else:
        assert other.value == plain.value


@pytest.mark.parametrize(
    "body",
    [
        "",
        "...",
        "A" * 200,
        "your key here",
        "key = load(path)\nif key is None:\n    raise ValueError(path)",
    ],
)
def test_the_lines_around_a_private_key_alone_are_none(body):
    begin, *_, end = pem(np.random.default_rng(0)).split("\n")
    assert list(find_keys(f"{begin}\n{body}\n{end}")) == []


@pytest.mark.parametrize("block", [700, 5000, 1 << 18])
def test_a_private_key_is_whole_wherever_the_file_is_cut(tmp_path, block):
    rng = np.random.default_rng(5)
    keys = [pem(rng, size=size) for size in (600, 1190, 2350)]
    path = tmp_path / "keys.txt"
    path.write_text("".join("some words here\n" * 211 + key + "\n" for key in keys * 2))
    scan = scan_files([path], salt=SALT, kinds=["key"], block=block)
    assert sorted(secret.way.written for secret in scan.found) == sorted(keys)
    assert {secret.count for secret in scan.found} == {2}


def test_random_values_of_settings_need_no_quotes():
    rng = np.random.default_rng(2)
    values = [drawn(rng, 40, "0123456789abcdef"), drawn(rng, 48)]
    text = f"# settings\nSECRET_KEY={values[0]}\nexport TOKEN={values[1]}\r\nDEBUG=1\n"
    assert [match.value for match in find_secrets(text)] == values


@pytest.mark.parametrize(
    "line",
    [
        "PATH=/usr/local/bin/Some1/Other2/lib64/xQz",
        "NAME=some_long_name_of_a_thing_in_words_only",
        "COUNT=8374659283746592837465928374",
        "value=SomeFunctionName(argument1, argument2)",
        "LETTERS=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    ],
)
def test_settings_that_are_not_random(line):
    assert find_secrets(line) == []
