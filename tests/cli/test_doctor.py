"""``remnant doctor``: what is there, what is missing, and the exit code."""

from __future__ import annotations

import json
import tempfile
from importlib.metadata import PackageNotFoundError, version

import pytest
import torch

import remnant
from remnant.cli import doctor


def test_it_names_versions_extras_and_devices(command):
    done = command("doctor", "--json")
    found = json.loads(done.out)
    assert done.code == 0
    assert found["ready"] is True
    assert found["faults"] == []
    assert found["versions"]["remnant"] == remnant.__version__
    assert found["versions"]["torch"] == version("torch")
    assert found["device"] == ("cuda" if torch.cuda.is_available() else "cpu")
    assert found["threads"] == torch.get_num_threads()
    names = {extra["name"] for extra in found["extras"]}
    assert {"data", "hf", "peft", "scan"} <= names
    assert "dev" not in names


def test_one_thread_is_not_printed_in_the_plural(command, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert ", 1 thread\n" in command("doctor").out


def test_it_prints_the_command_of_a_missing_extra(command, monkeypatch):
    def without(package):
        if package in ("phonenumbers", "transformers"):
            raise PackageNotFoundError(package)
        return "0.0.1" if package == "pillow" else version(package)

    monkeypatch.setattr(doctor, "version", without)
    done = command("doctor")
    lines = [line.strip() for line in done.out.splitlines()]
    assert done.code == 0
    (scan,) = (line for line in lines if line.startswith("scan "))
    assert "missing (phonenumbers>=9.0): pip install " in scan
    (data,) = (line for line in lines if line.startswith("data "))
    assert "missing (pillow>=10.0): pip install " in data, "one that is too old is missing"
    (peft,) = (line for line in lines if line.startswith("peft "))
    assert "transformers" in peft, "what it takes from another extra counts"
    assert lines[-1] == "Everything that Remnant requires is there."


def test_something_required_that_cannot_be_loaded_is_exit_code_1(command, monkeypatch):
    def broken(name):
        if name == "scipy":
            raise ImportError("libopenblas.so is not there\nand more")

    monkeypatch.setattr(doctor, "import_module", broken)
    done = command("doctor")
    assert done.code == 1
    assert done.out.splitlines()[-1] == "scipy cannot be loaded: libopenblas.so is not there."
    assert json.loads(command("doctor", "--json").out)["ready"] is False


@pytest.mark.parametrize("kind", [RuntimeError, AttributeError, ValueError])
def test_a_library_that_breaks_while_it_is_imported_is_a_fault(kind, command, monkeypatch):
    def broken(name):
        if name == "numpy":
            raise kind("numpy.dtype size changed.")

    monkeypatch.setattr(doctor, "import_module", broken)
    done = command("doctor")
    assert done.code == 1
    assert done.out.splitlines()[-1] == "numpy cannot be loaded: numpy.dtype size changed."


def test_a_gpu_that_cannot_be_used_is_a_fault(command, monkeypatch):
    def broken(place):
        raise RuntimeError("CUDA driver initialization failed.\nMore.")

    monkeypatch.setattr(doctor.declared, "gpus_seen", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", broken)
    done = command("doctor")
    assert done.code == 1
    assert done.out.splitlines()[-1] == (
        "The GPU cannot be used: CUDA driver initialization failed."
    )
    assert json.loads(command("doctor", "--json").out)["device"] == "cpu"


def test_no_folder_for_temporary_files_is_a_fault(command, monkeypatch):
    def none_usable(**_):
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryFile", none_usable)
    monkeypatch.setattr(tempfile, "gettempdir", none_usable)
    done = command("doctor")
    assert done.code == 1
    assert done.out.splitlines()[-1].endswith("the temporary folder, cannot be written.")


def test_a_folder_that_cannot_be_written_is_said(command, monkeypatch):
    monkeypatch.setattr(doctor, "_is_writable", lambda folder: False)
    done = command("doctor")
    assert done.code == 1
    assert "no; name another with --out" in done.out
    assert done.out.splitlines()[-1].endswith("the temporary folder, cannot be written.")
