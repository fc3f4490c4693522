"""Chat templates that refuse messages, that fail, and that are broken."""

from __future__ import annotations

import pytest

from remnant.errors import InvalidInput
from remnant.integrations.chat_template import RefusedMessages, render_chat

from .membership.conftest import tokenizer_of

SECRET = "4929-1234"
CHAT = [{"role": "user", "content": SECRET}, {"role": "assistant", "content": "yes"}]
PLAIN = "{% for m in messages %}{{ m['content'] }}|{% endfor %}"
# As Gemma's and Mistral's refuse.
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}" + PLAIN
)
ALTERNATE = (
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    '{{ raise_exception("Roles must alternate.") }}{% endif %}{% endfor %}' + PLAIN
)


def rendered(template, messages=CHAT):
    tokenizer = tokenizer_of()
    tokenizer.chat_template = template
    return render_chat(tokenizer, messages)


def test_a_text_is_what_the_template_gives():
    assert rendered(PLAIN) == f"{SECRET}|yes|"
    assert rendered({"default": PLAIN, "tool_use": "no"}) == f"{SECRET}|yes|"


@pytest.mark.parametrize(
    ("template", "role", "reason"),
    [
        (NO_SYSTEM, "system", "refuses them: System role not supported"),
        (ALTERNATE, "assistant", "refuses them: Roles must alternate"),
        ("{{ raise_exception('not ' + messages[0]['content']) }}", "user", "refuses them"),
        ("{{ raise_exception(messages[0]['content']) }}", "user", "refuses them"),
        ("{{ raise_exception('') }}", "user", "refuses them"),
        ("{{ nothing.there }}", "user", "needs 'nothing', which is not defined"),
        ("{{ messages[0].parts.name }}", "user", "needs 'parts', which is not defined"),
        ("{{ messages[0][messages[0]['content']].x }}", "user", "needs something that is not"),
        ("{{ messages[0]['content'] + 1 }}", "user", "fails on them (TypeError)"),
        ("{{ 1 / 0 }}", "user", "fails on them (ZeroDivisionError)"),
        ("{% for i in range(10 ** 9) %}{% endfor %}", "user", "fails on them (OverflowError)"),
        ("{{ ''.__class__.__mro__ }}", "user", "does what no template may"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "user", "fails on them (Recursion"),
    ],
)
def test_messages_that_a_template_refuses_are_not_quoted(template, role, reason):
    with pytest.raises(RefusedMessages) as raised:
        rendered(template, [{"role": role, "content": SECRET}, *CHAT[1:]])
    assert raised.value.reason.startswith(reason)
    assert SECRET not in str(raised.value)
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for m in messages %}", "chat template is broken at line 1"),
        ("\n{{ messages | no_such_filter }}", "chat template is broken at line 2"),
        ({"tool_use": PLAIN}, "no chat template called 'default'"),
    ],
)
def test_a_broken_template_is_no_fault_of_the_messages(template, words):
    with pytest.raises(InvalidInput) as raised:
        rendered(template)
    assert not isinstance(raised.value, RefusedMessages)
    assert words in str(raised.value)


def test_a_template_that_does_not_end_is_one_sentence(monkeypatch):
    monkeypatch.setattr("remnant.integrations.chat_template.SECONDS", 0.3)
    loop = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(InvalidInput, match=r"takes longer than 0\.3 seconds") as raised:
        rendered(loop)
    assert not isinstance(raised.value, RefusedMessages)  # no other row would fare better
    assert SECRET not in str(raised.value)
