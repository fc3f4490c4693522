"""Studies on Ray give the numbers of studies here, also where workers, machines and drivers die."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

from remnant.canaries import read_canary_sets
from remnant.errors import InvalidInput, RemnantError
from remnant.integrations.workers import ray_workers
from remnant.integrations.workers.ray_workers import RayWorkers, Room, Unreachable
from remnant.records import Record
from remnant.studies import Execution, read_recipe, run_study
from remnant.studies.jobs.execution import Job
from remnant.studies.jobs.scheduling import Distributed, OutOfMemory, WorkerLost

from .conftest import BLOCK, array_files

TASK = "ray::_run_task"
SERVICES = ("gcs_server", "raylet", "monitor.py", "log_monitor.py", "dashboard.py")


def children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


def running_tasks(raylet: int) -> list[int]:
    """The processes of a machine that run a job now."""
    found = []
    for process in children(raylet):
        try:
            if Path(f"/proc/{process}/cmdline").read_bytes().startswith(TASK.encode()):
                found.append(process)
        except OSError:
            continue
    return found


def raylet_of(node) -> int:
    return node.all_processes["raylet"][0].process.pid


@pytest.fixture
def cluster():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    made.shutdown()


class Saboteur(threading.Thread):
    """Kills a worker in the middle of a job, then removes the second machine in another one."""

    def __init__(self, cluster, second, lines):
        super().__init__(daemon=True)
        self.cluster, self.second, self.lines = cluster, second, lines
        self.stop = False

    def run(self):
        head, other = raylet_of(self.cluster.head_node), raylet_of(self.second)
        victims = self._wait(lambda: running_tasks(head) + running_tasks(other))
        if victims:
            os.kill(victims[0], signal.SIGKILL)
        self._wait(lambda: self.lines)
        self._wait(lambda: running_tasks(other))
        self.cluster.remove_node(self.second, allow_graceful=False)

    def _wait(self, found):
        """Wait until something is found, or the study is over."""
        while not self.stop and not found():
            time.sleep(0.01)
        return found()


def test_two_machines_give_the_same_bytes_though_a_worker_and_a_machine_die(
    cluster, recipe, local, tmp_path, monkeypatch
):
    second = cluster.add_node(num_cpus=1)
    study, lines = read_recipe(recipe), []

    # A machine with another version is refused before any work.
    ours = ray_workers.software()
    with monkeypatch.context() as patch:
        patch.setattr(ray_workers, "software", lambda: ours | {"torch": "1.0.0"})
        workers = RayWorkers(cluster.address, count=None, threads=1)
        with pytest.raises(InvalidInput, match=r"has torch .* and not 1\.0\.0"), workers:
            pass
    with pytest.raises(InvalidInput, match="No machine of the Ray cluster has 64 processors"):
        RayWorkers(cluster.address, count=None, threads=64).survey()
    assert RayWorkers(cluster.address, count=9, threads=1).survey() == Room(tasks=2, machines=2)
    assert not ray.is_initialized(), "a dry run leaves the cluster"

    saboteur = Saboteur(cluster, second, lines)
    workers = RayWorkers(cluster.address, count=None, threads=1)
    shown = []
    with Distributed(workers, say=lines.append) as executor:
        saboteur.start()
        run_study(
            study,
            tmp_path / "run",
            Execution(pool_block=BLOCK, executor=executor),
            progress=lambda *state: shown.append(state),
        )
    saboteur.stop = True
    saboteur.join()
    assert workers.count == 2
    assert any("its worker process was killed or crashed" in line for line in lines), lines
    assert any("its machine left the cluster" in line for line in lines), lines
    assert all(line.startswith("remnant: group '") for line in lines)
    assert array_files(tmp_path / "run") == array_files(local)
    assert Record.open(tmp_path / "run").results() == Record.open(local).results()
    execution = Record.open(tmp_path / "run").execution
    assert (execution["on"], execution["workers"], execution["groups"]) == ("ray", 2, "5 of 5")
    assert Record.open(tmp_path / "run").provenance["threads"] == 1
    stages, done, totals = zip(*shown, strict=True)
    assert set(stages) == {"study"}
    assert set(totals) == {(8 + 2) * 250}, "one bar for the whole study"
    assert max(done) == totals[0]


def remnant_command(*arguments):
    return [sys.executable, "-c", "from remnant.cli.main import main; main()", *map(str, arguments)]


def test_a_killed_driver_goes_on_and_trains_no_job_twice(recipe, local, tmp_path):
    out = tmp_path / "run"
    command = remnant_command(
        *("run", recipe, "--threads", 1, "--on", "ray", "--workers", 2),
        *("--pool-block", BLOCK, "--out", out),
    )
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    blocks = out / "pool" / "arrays"
    while driver.poll() is None and not list(blocks.glob("models-*.npy")):
        time.sleep(0.01)
    listened = listening(descendants(driver.pid))
    driver.kill()
    assert driver.wait() == -signal.SIGKILL, "the study ended before it could be killed"
    assert listened, "Ray was running"
    assert {address for address, _ in listened} == {"127.0.0.1"}
    kept = {path.name: path.stat().st_mtime_ns for path in blocks.glob("models-*.npy")}
    assert 0 < len(kept) < 4
    left = list(Path("/tmp").glob(f"remnant-ray-{driver.pid}-*"))
    assert [path.stat().st_mode & 0o777 for path in left] == [0o700]
    listed = subprocess.run(
        remnant_command("runs", tmp_path), capture_output=True, text=True, check=True, timeout=3600
    )
    assert "interrupted" in listed.stdout
    assert "of 5 groups trained" in listed.stdout

    again = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert again.returncode == 0, again.stderr
    others = [line for line in again.stderr.splitlines() if not line.startswith("study: ")]
    assert others == [], "nothing of Ray's own is printed"
    assert array_files(out) == array_files(local)
    for name, when in kept.items():
        assert (blocks / name).stat().st_mtime_ns == when, f"{name} was trained twice"
    assert not any(path.exists() for path in left), "what a killed study left is removed"


LETTERS = """
question = "exposure"
[plan]
kind = "insert"
repeats = [1, 8]
steps = 20
controls = 2
batch = 8
[text]
characters = 3000
window = 24
[secret]
template = "key {letters:10};"
[model]
options = { units = 8, layers = 1 }
[measure]
method = "sampled"
references = 40
limit = 20.0
"""


def leaks(secret, shared, context):
    """Fail with a secret in a local variable, in the error's text and in the text of its cause."""
    local = f"{secret} is local"
    try:
        raise KeyError(local)
    except KeyError as fault:
        raise ValueError(f"cannot read {local}") from fault


def prints(marker, shared, context):
    print(marker, flush=True)
    print(marker, file=sys.stderr, flush=True)


@pytest.fixture
def session_files(monkeypatch):
    """What the folder of a Ray of this machine had in it when it was removed, by path."""
    files, remove = {}, ray_workers.shutil.rmtree

    def read_first(folder, **options):
        for path in Path(folder).rglob("*"):
            if path.is_file():
                files[path.relative_to(folder).as_posix()] = path.read_bytes()
        remove(folder, **options)

    monkeypatch.setattr(ray_workers.shutil, "rmtree", read_first)
    return files


def test_no_secret_is_in_a_file_of_rays_nor_in_the_output(tmp_path, session_files, capfd):
    path, out = tmp_path / "letters.toml", tmp_path / "run"
    path.write_text(LETTERS)
    marker, secret = "a line that a group printed", "xqzvkjwpyb"
    how = {
        "shared": secret,
        "execution": Execution(),
        "folder": out,
        "keep": lambda job, outcome: None,
        "on_size": lambda size: None,
    }
    with Distributed(RayWorkers(count=1, threads=1)) as executor:
        run_study(read_recipe(path), out, Execution(executor=executor))
        started = executor.workers._folder
        commands = {process: command(process) for process in descendants(os.getpid())}
        services = {  # workers write their title over their environment
            process: words
            for process, words in commands.items()
            if any(Path(word).name in SERVICES for word in words[:3])
        }
        switches = [environment(process).get("RAY_USAGE_STATS_ENABLED") for process in services]
        executor.run([Job(name="prints", work=partial(prints, marker))], **how)
        with pytest.raises(RemnantError) as caught:
            executor.run([Job(name="leaks", work=partial(leaks, secret))], **how)
    message = str(caught.value)
    assert message.startswith("Group 'leaks' failed: ValueError in remnant/studies/jobs/remote")
    assert not started.exists()

    # What a job prints is found, so what is not found is not there.
    logs = b"\n".join(session_files.values())
    assert logs.count(marker.encode()) == 2
    assert any("export_events" in name for name in session_files)
    shown = b"".join(part.encode() for part in (message, *capfd.readouterr()))
    canaries = [
        canary
        for drawn in read_canary_sets(out / "canaries.jsonl")
        for canary in (*drawn.canaries, *drawn.controls)
    ]
    assert len(canaries) == 4
    for hidden in (secret, *(canary.secret for canary in canaries)):
        assert hidden.encode() not in logs
        assert hidden.encode() not in shown

    # Ray's makers are told nothing, and its dashboard shows nothing.
    assert switches == ["0"] * len(SERVICES)
    (dashboard,) = (words for words in services.values() if "dashboard.py" in words[1])
    assert {"--disable-frontend", "--modules-to-load=UsageStatsHead"} <= set(dashboard)


def environment(process: int) -> dict[str, str]:
    entries = Path(f"/proc/{process}/environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def command(process: int) -> list[str]:
    return Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")


def descendants(process: int) -> list[int]:
    found, waiting = [], [process]
    while waiting:
        waiting += (own := children(waiting.pop()))
        found += own
    return [process, *found]


def listening(processes: list[int]) -> set[tuple[str, int]]:
    """The addresses and ports that processes accept connections on."""
    sockets = set()
    for process in processes:
        for link in Path(f"/proc/{process}/fd").glob("*"):
            try:
                target = os.readlink(link)
            except OSError:
                continue
            if target.startswith("socket:["):
                sockets.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                address, port = fields[1].split(":")
                found.add((readable(address), int(port, 16)))
    return found


def readable(address: str) -> str:
    """The IPv4 address of a line of /proc/net, also one that is written as IPv6."""
    if len(address) == 32 and not address.startswith("0000000000000000FFFF0000"):
        return address
    octets = bytes.fromhex(address[-8:])
    return ".".join(str(octet) for octet in reversed(octets))


class FakeRay:
    """Ray without a cluster: calls raise what the test says, and machines are what it says."""

    exceptions = ray.exceptions

    def __init__(self, fault=None, nodes=()):
        self.fault, self.machines = fault, nodes

    def put(self, shared):
        raise self.fault

    def get(self, handle, timeout=None):
        raise self.fault

    def wait(self, handles, num_returns, timeout):
        return [], handles

    def nodes(self):
        return self.machines


def without_cluster(**settings):
    workers = RayWorkers(count=1, threads=2, gpus=settings.pop("gpus", 0.0))
    workers._ray = FakeRay(**settings)
    return workers


FULL = "Ray's object store is full. Start Ray with more"


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (
            ray.exceptions.OutOfMemoryError("used 95 %"),
            OutOfMemory,
            "the memory of its machine was",
        ),
        (ray.exceptions.NodeDiedError("gone"), WorkerLost, "its machine left the cluster"),
        (ray.exceptions.WorkerCrashedError(), WorkerLost, "its worker process was killed"),
        (ray.exceptions.ObjectLostError("ab" * 14, "", ""), WorkerLost, "its result was lost"),
        (ray.exceptions.RaySystemError("broken"), WorkerLost, "Ray itself failed"),
        (ray.exceptions.ObjectStoreFullError("full"), InvalidInput, FULL),
        (ray.exceptions.OutOfDiskError("full"), InvalidInput, FULL),
    ],
)
def test_every_fault_of_ray_has_its_sentence(fault, kind, words):
    with pytest.raises(kind, match=words):
        without_cluster(fault=fault).result("handle")


def test_data_that_do_not_fit_the_object_store_are_one_sentence():
    full = ray.exceptions.ObjectStoreFullError("full")
    with pytest.raises(InvalidInput, match=FULL):
        without_cluster(fault=full).share("data")


def test_a_terminal_gets_no_escape_sequence_of_rays():
    code = (
        "from remnant.integrations.workers.ray_workers import _import_ray\n"
        "_import_ray(local=True)\nprint('done')"
    )
    ours, theirs = pty.openpty()
    run = subprocess.run([sys.executable, "-c", code], stdout=theirs, timeout=3600, check=True)
    os.close(theirs)
    shown = os.read(ours, 4096)
    os.close(ours)
    assert run.returncode == 0
    assert shown == b"done\r\n"


@pytest.mark.parametrize(
    "fault",
    [
        Exception("The current node timed out during startup.\nMore lines."),
        TimeoutError("timed out"),
        OSError(28, "No space left on device"),
        ray.exceptions.RaySystemError("broken"),
        KeyboardInterrupt(),
    ],
)
def test_a_ray_that_cannot_start_is_one_sentence_and_leaves_nothing(fault):
    left = []

    def init(*, _temp_dir, **_):
        command = [sys.executable, "-c", "import time; time.sleep(600)", _temp_dir]
        left.append((subprocess.Popen(command), Path(_temp_dir).parent))
        raise fault

    workers = without_cluster()
    workers._ray.init, workers._ray.is_initialized = init, lambda: False
    kind = KeyboardInterrupt if isinstance(fault, KeyboardInterrupt) else InvalidInput
    try:
        with pytest.raises(kind) as raised:
            workers._connect()
        workers._disconnect()
        ((process, folder),) = left
        assert process.wait(60) == -9
        assert not folder.exists()
    finally:
        left[0][0].kill()
    if kind is InvalidInput:
        assert str(raised.value).startswith("Ray cannot be started on this machine: ")
        assert "More lines" not in str(raised.value)
        assert "without --on ray" in str(raised.value)


def test_a_cluster_that_answers_too_late_is_one_sentence():
    def late(**_):
        raise Exception("timed out")

    workers = without_cluster()
    workers.address, workers._ray.init = "auto", late
    with pytest.raises(Unreachable, match="No Ray cluster can be reached at auto"):
        workers._connect()


def test_a_cluster_of_another_version_is_one_sentence():
    def differ(**_):
        raise RuntimeError("Version mismatch: The cluster was started with:\n Ray: 1.0")

    workers = without_cluster()
    workers.address, workers._ray.init = "auto", differ
    with pytest.raises(InvalidInput, match="cluster at auto has another version of Ray or Python"):
        workers._connect()


def test_a_cluster_that_asks_for_a_token_is_one_sentence(monkeypatch):
    def refuse(**_):
        raise ray.exceptions.AuthenticationError("the token is missing")

    workers = without_cluster()
    workers.address = "auto"
    workers._ray.init = refuse
    with pytest.raises(Unreachable, match="If it asks for a token, set RAY_AUTH_MODE=token here"):
        workers._connect()


def test_a_cluster_without_a_fitting_machine_is_not_waited_for_forever(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    fits = {"Alive": True, "Resources": {"CPU": 2.0, "GPU": 1.0}}
    small = {"Alive": True, "Resources": {"CPU": 1.0, "GPU": 1.0}}
    gone = fits | {"Alive": False}
    workers = without_cluster(nodes=[small, gone], gpus=0.5)
    assert workers.wait(["handle"], 1.0) == []
    now[0] = 59.0
    assert workers.wait(["handle"], 1.0) == []
    now[0] = 61.0
    with pytest.raises(InvalidInput, match=r"has 2 processors and 0\.5 GPU any more"):
        workers.wait(["handle"], 1.0)
    workers._ray.machines = [fits]
    assert workers.wait(["handle"], 1.0) == []
    assert workers._room(fits) == 1
