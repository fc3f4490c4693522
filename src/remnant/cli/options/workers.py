"""Options that say who trains: GPUs of this machine, a Ray cluster."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from remnant.cli.options import declared
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.studies.jobs.scheduling import Distributed


def _check_devices(
    context: click.Context, parameter: click.Parameter, devices: str
) -> tuple[str, ...]:
    """Return the devices one by one: ``cuda:0,1`` is ``cuda:0`` and ``cuda:1``.

    ``auto`` stays: ``devices_of`` replaces it, once the recipes are read.
    """
    if devices == declared.AUTO:
        return (devices,)
    match = re.fullmatch(r"cuda:(\d+(?:,\d+)+)", devices)
    if match is None:
        return (declared.check_device(context, parameter, devices),)
    named = [f"cuda:{int(number)}" for number in match[1].split(",")]
    if len(set(named)) < len(named):
        raise InvalidInput(
            f"--device {devices} names a GPU twice.", hint="Name each GPU once, as in cuda:0,1."
        )
    return tuple(declared.check_device(context, parameter, device) for device in named)


def worker_options(command: declared.Command) -> declared.Command:
    """Add the options of ``remnant run`` that say who trains."""
    options = (
        click.option(
            "--device",
            default=declared.AUTO,
            show_default=True,
            callback=_check_devices,
            help="cpu or cuda; cuda:0,1 trains groups of models on several GPUs. auto: cuda where "
            "there is one, else cpu.",
        ),
        click.option(
            "--on",
            "place",
            help="ray or ray:ADDRESS: train groups of models on a Ray cluster; without an address "
            "Ray is started on this machine.",
        ),
        click.option(
            "--workers",
            type=int,
            help="With --on: groups that are trained at a time.  [default: as many as there are "
            "processors or GPUs for]",
        ),
        click.option(
            "--gpus-per-task", type=float, help="With --on: GPUs of each group, such as 1 or 0.25."
        ),
        declared.threads(passed_on=True),
    )
    for option in reversed(options):
        command = option(command)
    return command


def devices_of(device: tuple[str, ...], place: str | None) -> tuple[str, ...]:
    """Return the devices of this process; with ``--on`` the groups have theirs."""
    if device != (declared.AUTO,):
        return device
    return ("cpu",) if place is not None else (declared.auto_device(),)


def check_workers(
    *,
    device: tuple[str, ...],
    place: str | None,
    workers: int | None,
    gpus_per_task: float | None,
) -> None:
    """Refuse options that contradict each other.

    Raises:
        InvalidInput: One sentence names them.
    """
    if place is None:
        given = declared.given({"workers": workers, "gpus_per_task": gpus_per_task})
        if given:
            raise InvalidInput(f"{given[0]} needs --on.", hint="Pass --on ray too.")
        return
    kind, colon, address = place.partition(":")
    if kind != "ray" or (colon and not address):
        raise InvalidInput(
            f"--on {place} is neither ray nor ray:ADDRESS.",
            hint="Pass --on ray, or --on ray:HOST:PORT for a cluster that runs.",
        )
    if address:
        from remnant.integrations.workers.ray_address import AUTO, host_and_port

        if address != AUTO:
            host_and_port(address)
    if device not in (("cpu",), (declared.AUTO,)):
        raise InvalidInput(
            f"--device {','.join(device)} and --on {place} are both given.",
            hint="With --on ray, pass --gpus-per-task 1 to train on GPUs.",
        )
    if workers is not None and workers < 1:
        raise InvalidInput(f"--workers {workers} is less than 1.", hint="Pass 1 or more.")
    if gpus_per_task is not None and not (
        0 < gpus_per_task <= 1 or (gpus_per_task > 1 and gpus_per_task.is_integer())
    ):
        raise InvalidInput(
            f"--gpus-per-task {gpus_per_task:g} is neither a share of a GPU nor a whole number.",
            hint="Pass 1, or a share such as 0.25 for four groups on one GPU.",
        )


def executor_for(
    *,
    device: tuple[str, ...],
    place: str | None,
    workers: int | None,
    gpus_per_task: float | None,
    threads: int | None,
) -> Distributed | None:
    """Return what runs the groups of studies; None: this process.

    Args:
        device: The devices, one or several.
        place: ``ray``, ``ray:ADDRESS`` or None.
        workers: Groups at a time.
        gpus_per_task: GPUs of a group.
        threads: Threads of each worker.

    Raises:
        MissingExtra: Ray is not installed.
        InvalidInput: A group needs a GPU of this machine, which has none.
    """
    if place is None and len(device) == 1:
        return None
    from remnant.studies.jobs.scheduling import Distributed, Workers

    own: Workers
    if place is None:
        from remnant.integrations.workers.device_workers import DeviceWorkers

        own = DeviceWorkers(device, threads=threads or _share(len(device)))
    else:
        from remnant.integrations.workers.ray_workers import RayWorkers, check_installed

        check_installed()
        address = place.partition(":")[2] or None
        if gpus_per_task and address is None:
            _check_gpus(gpus_per_task)
        own = RayWorkers(
            address,
            count=workers,
            threads=threads or (_share(workers or 1) if workers and address is None else 1),
            gpus=gpus_per_task or 0.0,
        )
    return Distributed(own)


def _check_gpus(per_task: float) -> None:
    """Refuse tasks that need more GPUs than this machine has."""
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if per_task > gpus:
        from remnant.studies.shared.wording import counted

        raise InvalidInput(
            f"--gpus-per-task {per_task:g} is more than this machine has: PyTorch sees "
            f"{counted(gpus, 'GPU')}.",
            hint="Leave it out, or name a cluster with --on ray:HOST:PORT.",
        )


def _share(workers: int) -> int:
    """The threads of each of some workers on this machine."""
    return max(1, (os.cpu_count() or 1) // workers)
