"""``--device``: where a model computes."""

from __future__ import annotations

import re

import click

from remnant.cli.counts import counted
from remnant.errors import InvalidInput


def _known(context: click.Context, parameter: click.Parameter, device: str) -> str:
    found = re.fullmatch(r"cpu|cuda(?::(\d+))?", device)
    if found is None:
        raise InvalidInput(f"--device {device} is neither cpu nor cuda.", hint="Pass cpu or cuda.")
    if device != "cpu":
        import torch

        many = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if int(found[1] or 0) >= many:
            raise InvalidInput(
                f"--device {device} is not there: torch sees {counted(many, 'GPU')}.",
                hint="Pass cpu, or one that is there." if many else "Pass cpu.",
            )
    return device


device_option = click.option(
    "--device", default="cpu", show_default=True, callback=_known, help="cpu or cuda."
)
