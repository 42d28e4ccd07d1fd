"""How far a run is, by hand: two cores, a clock that the test moves."""

import pytest

from snakemake_logger_plugin_stepcredit.failures import Failures
from snakemake_logger_plugin_stepcredit.progress import Job, Progress, duration, last_lines


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def progress(clock):
    return Progress({"train": 4, "evaluate": 2, "all": 1, "total": 7}, cores=2, clock=clock)


def job(number, rule="train", log=()):
    return Job(number, rule, f"{rule} {number}", log)


def test_the_total_of_snakemake_is_not_counted_as_a_job(progress):
    assert progress.total == 7
    assert progress.plan() == "7 jobs to run, 2 at a time: 4 train, 2 evaluate, all"


def test_before_any_job_has_ended_the_time_left_is_not_guessed(progress, clock):
    progress.begin(job(1))
    clock.now += 30
    assert progress.remaining() == "time left not known yet"


def test_the_time_left_is_the_mean_of_each_rule_over_the_cores(progress, clock):
    progress.begin(job(1))
    clock.now += 60
    assert progress.finish(1) == "[1/7] train 1: done in 1 min 00 s"
    progress.begin(job(2))
    clock.now += 20
    # 40 s of the running job and 2 more of 60 s, by two; evaluate has not been timed
    assert progress.remaining() == "at least 1 min 20 s left"
    progress.begin(job(3, "evaluate"))
    clock.now += 10
    progress.finish(3)
    # 30 s of the running one, 2 of 60 s, 1 evaluate of 10 s
    assert progress.remaining() == "about 1 min 20 s left"


def test_a_progress_bar_tells_how_far_a_job_is(progress, clock, tmp_path):
    log = tmp_path / "job.log"
    log.write_text(
        "loading: 100%|###| 3/3 [00:01]\nRL:  10%|#  | 4/40 [00:09<01:21]\rRL:  25%|##  | 10/40 [00:30<01:30]\r"
    )
    progress.begin(job(1, log=(log,)))
    clock.now += 30
    assert "train 1 step 10/40 | 30 s so far" in progress.status()
    # the rest of this one 90 s, three more of 120 s, over two cores
    assert progress.remaining() == "at least 3 min 45 s left"


def test_a_job_is_called_by_its_rule_and_wildcards():
    fields = {"jobid": 7, "rule_name": "train_rl", "wildcards": {"arm": "frozen", "seed": "1"}, "log": ["a.log"]}
    assert Job.from_event(fields).name == "train_rl frozen seed1"


def test_durations_are_short():
    assert [duration(s) for s in (0.4, 59.4, 59.6, 125, 3600 + 20 * 60)] == [
        "0 s", "59 s", "1 min 00 s", "2 min 05 s", "1 h 20 min",
    ]  # fmt: skip


def test_the_end_of_a_log_shows_a_bar_once(tmp_path):
    log = tmp_path / "job.log"
    log.write_text("one\nRL: 1/2\rRL: 2/2\n\nValueError: two\n")
    assert last_lines(log, 2) == ["RL: 2/2", "ValueError: two"]
    assert last_lines(tmp_path / "absent.log", 2) == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("Command 'set -e; sleep  1; false' returned non-zero exit status 3.", "failed with exit status 3"),
        (
            "Command 'sleep 1; false' returned non-zero exit status 137.",
            "killed by signal 9, mostly for want of memory",
        ),
        ("Command 'sleep 1; false' died with <Signals.SIGTERM: 15>.", "killed by signal 15"),
    ],
)
def test_a_failure_says_how_the_command_ended(tmp_path, error, said):
    log = tmp_path / "b.log"
    log.write_text("starting\nthe cause\n")
    failures = Failures()
    assert failures.explains(error)
    failures.add(job(1, log=(log,)), {"shellcmd": "sleep 1;\n  false"})
    text = failures.describe()
    assert said in text
    assert text.endswith(f"  | starting\n  | the cause\nlog: {log}")
    assert not failures.explains("WorkflowError: something else")
