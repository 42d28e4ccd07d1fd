"""The command: rows for machines, a table for people, and mistakes that are explained."""

import json

import pytest
from typer.testing import CliRunner

from stepcredit.cli.fingerprint import commands
from stepcredit.losses import LOSSES
from stepcredit.provenance.errors import UserError


def run(*arguments: str) -> str:
    result = CliRunner().invoke(commands, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_all_losses_are_named_in_json():
    rows = json.loads(run("--all", "--json"))
    assert [row["loss"] for row in rows] == list(LOSSES)
    assert all(row["named"] == row["loss"] and 0 <= row["distance"] < 1e-9 for row in rows)
    assert all(set(row) == {"loss", "named", "distance"} for row in rows)


def test_one_loss_lists_its_distance_to_each_other():
    output = run("--loss", "sc")
    assert output.splitlines()[1].split()[:2] == ["sc", "sc"]
    assert all(name in output for name in LOSSES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either --loss NAME or --all"),
        (("--all", "--loss", "sc"), "either --loss NAME or --all"),
        (("--loss", "reinforced"), 'did you mean "reinforce"'),
    ],
)
def test_a_mistake_is_explained(arguments, message):
    with pytest.raises(UserError, match=message):
        run(*arguments)
