"""Chat templates: messages into the text that a model was trained on.

A template is a program that comes with a tokenizer. It may refuse messages, such as a role that it
does not know, and it may be broken. Every template of the package is run by ``render_chat``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError, UndefinedError

from remnant.errors import InvalidInput
from remnant.integrations.adapter_folder import tokenizer_folder
from remnant.integrations.pretrained import is_library_fault, read_tokenizer
from remnant.integrations.time_bound import SECONDS, time_bound
from remnant.studies.membership.result import AS_A_FIELD

_NAMES = re.compile(r"'([^']+)' is undefined|has no attribute '([^']+)'")
_LONGEST = 120  # characters of a template's own words


class RefusedMessages(InvalidInput):
    """A chat template gives no text for a conversation; it may for others.

    Attributes:
        reason: Why, in words that hold nothing of the messages.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"Messages have no text: the chat template {reason}.", hint=AS_A_FIELD)
        self.reason = reason


def render_chat(tokenizer: Any, messages: list[Any]) -> str:
    """Return the text of a conversation by the chat template of a tokenizer.

    Raises:
        RefusedMessages: The template raises on these messages. What it says is repeated only where
            it is a string of the template: anything else may quote the messages.
        InvalidInput: The template cannot be compiled, does not end, or is none.
    """
    template = _chosen(tokenizer)
    try:
        with time_bound(SECONDS):
            text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
        return str(text)
    except TimeoutError:
        raise InvalidInput(
            f"The tokenizer's chat template takes longer than {SECONDS:g} seconds for one "
            "conversation.",
            hint=f"Save the tokenizer with the template that it was trained with. {AS_A_FIELD}",
        ) from None
    except TemplateSyntaxError as fault:
        raise InvalidInput(
            f"The tokenizer's chat template is broken at line {fault.lineno}.",
            hint=f"Save the tokenizer with the template that it was trained with. {AS_A_FIELD}",
        ) from None
    except UndefinedError as fault:
        names = [name for pair in _NAMES.findall(str(fault)) for name in pair if name]
        known = [name for name in names if name in template]
        missing = f"{known[0]!r}, which" if known else "something that"
        raise RefusedMessages(f"needs {missing} is not defined") from None
    except SecurityError:
        raise RefusedMessages("does what no template may") from None
    except TemplateError as fault:
        raise RefusedMessages(_said(str(fault), template)) from None
    except BaseException as fault:
        if not is_library_fault(fault):
            raise
        raise RefusedMessages(f"fails on them ({type(fault).__name__})") from None


def _chosen(tokenizer: Any) -> str:
    """The template of a tokenizer that may have several.

    Raises:
        InvalidInput: There is no default one.
    """
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    if not isinstance(template, str):
        raise InvalidInput("The tokenizer has no chat template called 'default'.", hint=AS_A_FIELD)
    return template


def _said(words: str, template: str) -> str:
    """What a template refuses with, if these are its own words."""
    own = any(f"{quote}{words}{quote}" in template for quote in "'\"")
    if not own or not words.strip(" .") or not words.isprintable():
        return "refuses them"
    return f"refuses them: {words[:_LONGEST].strip(' .')}"


class ChatTemplate:
    """The chat template of a model's tokenizer, read when it is needed.

    Args:
        folder: Of the model.
        base: Of an adapter's base model.
    """

    def __init__(self, folder: Path, *, base: str | Path | None = None) -> None:
        self._folder, self._base = folder, base
        self._tokenizer: Any = None

    def __call__(self, messages: list[Any]) -> str:
        """Return the text of a conversation, without the special tokens that begin every text.

        Raises:
            RefusedMessages: The template gives no text for these messages.
            InvalidInput: The tokenizer has no chat template, or one that is broken.
        """
        if self._tokenizer is None:
            self._tokenizer = read_tokenizer(tokenizer_folder(self._folder, base=self._base))
        if not getattr(self._tokenizer, "chat_template", None):
            raise InvalidInput(
                f"The rows hold messages, and the tokenizer of {self._folder} has no chat "
                "template.",
                hint=AS_A_FIELD,
            )
        text, begin = render_chat(self._tokenizer, messages), self._tokenizer.bos_token
        return text.removeprefix(begin) if begin else text
