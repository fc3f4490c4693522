"""What differs between kinds of model: how each is loaded, planted, trained, scored and judged.

A task is a file with a ``TASK``; it is imported when a study of it is run, and only then.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remnant.tasks.task import Task


def load_task(name: str) -> Task[Any, Any]:
    """Import a task by its name: ``images``, ``text``, ``speech`` or ``pairs``."""
    task: Task[Any, Any] = import_module(f"remnant.tasks.{name}").TASK
    return task
