"""Scripts run in processes of their own, as users run them, without importing PyTorch each time.

One server process has imported what scripts import, and is forked for each of them: a script begins
with its own arguments, folder, environment and ``__main__``, and the libraries are there already.
Run as a program it is the server: it takes a JSON line for each group of processes on its standard
input, and answers with a line of their exit codes when all have ended.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

IMPORTED = (
    *("torch", "scipy.stats", "transformers.trainer", "trl.trainer.sft_trainer", "peft"),
    *("lightning", "opacus", "sklearn.datasets"),
    *("remnant.integrations.training.audit", "remnant.cli.main", "remnant.studies.exposure.run"),
)


class ScriptProcesses:
    """Starts scripts in forks of one server process, which is started with the first of them."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory()

    def run(
        self,
        *arguments: object,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        timeout: float = 1200,
    ) -> subprocess.CompletedProcess[str]:
        """Run one script with arguments; ``environment`` is set beside that of the tests."""
        (done,) = self.run_together([environment or {}], *arguments, folder=folder, timeout=timeout)
        return done

    def run_together(
        self,
        environments: Sequence[Mapping[str, str]],
        *arguments: object,
        folder: Path | None = None,
        timeout: float = 1200,
    ) -> list[subprocess.CompletedProcess[str]]:
        """Run one script in several processes at once, each with an environment of its own."""
        words = [str(word) for word in arguments]
        outputs = [
            [str(Path(self._folder.name, f"{place}-{name}")) for name in ("out", "err")]
            for place in range(len(environments))
        ]
        order = {
            "arguments": words,
            "folder": str(folder or Path.cwd()),
            "environments": [{**os.environ, **given} for given in environments],
            "outputs": outputs,
            "timeout": timeout,
        }
        server = self._started()
        print(json.dumps(order), file=server.stdin, flush=True)
        codes = json.loads(server.stdout.readline())
        return [
            subprocess.CompletedProcess(
                words, code, *(Path(file).read_text(encoding="utf-8") for file in files)
            )
            for code, files in zip(codes, outputs, strict=True)
        ]

    def _started(self) -> subprocess.Popen[str]:
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "HF_HOME": self._folder.name},
            )
        return self._server

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server.stdin.close()
            self._server.stdout.close()
        self._folder.cleanup()


def become(order: dict, environment: dict[str, str], files: Sequence[str]) -> None:
    """Run the script of an order in this process, which was forked for it, and end."""
    code = 1
    try:
        for descriptor, file in zip((1, 2), files, strict=True):
            made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(made, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = order["arguments"]
        sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
            if isinstance(left.code, str):
                print(left.code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def serve() -> None:
    """Run what is ordered on standard input, until it is closed."""
    for name in IMPORTED:
        importlib.import_module(name)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        order = json.loads(line)
        started = []
        for environment, files in zip(order["environments"], order["outputs"], strict=True):
            if (process := os.fork()) == 0:
                become(order, environment, files)
            started.append(process)

        def end(*_: object, processes: list[int] = started) -> None:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

        signal.signal(signal.SIGALRM, end)
        signal.alarm(int(order["timeout"]))
        codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in started]
        signal.alarm(0)
        print(json.dumps(codes), file=answers, flush=True)


if __name__ == "__main__":
    serve()
