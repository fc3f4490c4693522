"""A positive control: known secrets, which a scan that is to find none has to find."""

from __future__ import annotations

import string
from collections.abc import Sequence

from remnant.canaries.natural.match import KINDS

_BASE64 = string.ascii_letters + string.digits + "+/"


def control_texts() -> dict[str, str]:
    """Return a text with one invented secret for each of ``KINDS``, put together from parts."""
    shuffled = "".join(_BASE64[place * 27 % 64] for place in range(64))
    texts = {
        "card": " ".join(["4929", "0714", "3683", "5574"]),
        "ssn": "-".join(["536", "90", "4399"]),
        "iban": " ".join(["GB29", "NWBK", "6016", "1331", "9268", "19"]),
        "email": "@".join(["r.okafor71", "mailbox.org"]),
        "phone": " ".join(["+1", "650", "253", "0000"]),
        "key": "AKIA" + shuffled.upper().replace("+", "").replace("/", "")[:16],
        "random": f'"{shuffled}"',
    }
    return {kind: f"the {kind} is {texts[kind]} today" for kind in KINDS}


def undetected_kinds(
    kinds: Sequence[str], *, region: str = "US", min_entropy: float | None = None
) -> tuple[str, ...]:
    """Return the kinds whose control a scan with these settings does not find.

    Example:
        >>> undetected_kinds(["card", "random"], min_entropy=7.0)
        ('random',)
    """
    from remnant.canaries.natural.scanning import find_secrets

    texts = control_texts()
    return tuple(
        kind
        for kind in kinds
        if kind
        not in {
            match.kind
            for match in find_secrets(texts[kind], region=region, min_entropy=min_entropy)
        }
    )
