"""GPUs claimed by lock files: two processes never get one device, and a killed holder frees its own."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from stepcredit import devices
from stepcredit.devices import Device, visible_devices
from stepcredit.provenance.errors import UserError

HOLDER = (
    "import sys, time; from stepcredit.devices import claim_devices;"
    "print(','.join(device.name for device in claim_devices(int(sys.argv[1]), poll=0.05)), flush=True);"
    "import os; assert os.environ['CUDA_VISIBLE_DEVICES'] != 'all';"
    "time.sleep(600)"
)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with two GPUs, as its `nvidia-smi` has it."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho '0, GPU-aa, 81920'\necho '1, GPU-bb, 81920'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv(devices.LOCKS, str(tmp_path / "locks"))
    monkeypatch.delenv(devices.VISIBLE, raising=False)
    return tmp_path


@contextmanager
def holder(count=1, **environment):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_driver_lists_the_devices_and_a_scheduler_leaves_some(machine, monkeypatch):
    assert visible_devices() == [Device("0", "GPU-aa", 81920), Device("1", "GPU-bb", 81920)]
    monkeypatch.setenv(devices.VISIBLE, "1")
    assert visible_devices() == [Device("1", "GPU-bb", 81920)]
    monkeypatch.setenv(devices.VISIBLE, "GPU-bb")
    assert visible_devices() == [Device("GPU-bb", "GPU-bb", 81920)]
    monkeypatch.setenv(devices.VISIBLE, "")
    assert visible_devices() == []


def test_two_processes_get_two_devices_and_a_third_waits_for_one_that_is_killed(machine):
    with holder() as first, holder() as second:
        got = [first.stdout.readline().strip(), second.stdout.readline().strip()]
        assert sorted(got) == ["0", "1"]
        with holder() as third:
            assert f"process {first.pid}" in (line := third.stderr.readline())
            assert line.startswith("waiting for 1 of 2 GPUs")
            first.send_signal(signal.SIGKILL)
            assert third.stdout.readline().strip() == got[0]


def test_one_device_under_two_names_is_one_device(machine):
    with holder(CUDA_VISIBLE_DEVICES="1") as first:
        assert first.stdout.readline().strip() == "1"
        with holder(CUDA_VISIBLE_DEVICES="GPU-bb") as second:
            assert second.stderr.readline().startswith("waiting for 1 of 1 GPUs")


def test_who_needs_two_holds_none_while_it_waits(machine):
    with holder() as first:
        taken = first.stdout.readline().strip()
        with holder(2) as both:
            assert both.stderr.readline().startswith("waiting for 2 of 2 GPUs")
            with holder() as third:
                assert {taken, third.stdout.readline().strip()} == {"0", "1"}


def test_too_few_devices_are_said_before_any_work(machine, monkeypatch):
    monkeypatch.setenv(devices.VISIBLE, "0")
    with pytest.raises(UserError, match=r"needs 2 GPUs, and it sees 1 \(CUDA_VISIBLE_DEVICES is 0\)"):
        devices.claim_devices(2)
    assert not (machine / "locks").exists()
