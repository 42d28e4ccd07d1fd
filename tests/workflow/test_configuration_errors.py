"""What a user sees whose configuration is wrong: one line, before anything runs."""

import pytest
from smoke_dag import prepare, snakemake

pytestmark = pytest.mark.workflow


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("rl={temprature: 1.0}", "rl.temprature is not a known key"),
        (
            "arms={frozen: {scorer: {kind: tre}}}",
            'arms.frozen.scorer.kind is "tre"; known values: tree, engine, cached, batched, naive'
            ' (did you mean "tree"?)',
        ),
        (
            "arms={frozen: {scorer: {kind: engine}}}",
            'arms.frozen.scorer: kind "engine" scores with the sampler\'s engine, which holds the policy',
        ),
        ("sft={steps: fast}", "sft.steps is 'fast'"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_runs_nothing(tmp_path, given, said):
    directory = prepare(tmp_path)
    done = snakemake(directory, "--config", given)
    assert done.returncode != 0
    lines = [line for line in (done.stdout + done.stderr).splitlines() if said in line]
    assert len(lines) == 1
    assert not (directory / "results").exists()
