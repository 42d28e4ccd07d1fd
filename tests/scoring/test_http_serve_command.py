"""`stepcredit serve-scorer` with what is no checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stepcredit.cli.scoring import commands
from stepcredit.provenance.errors import UserError


def test_a_directory_without_a_model_is_the_users_mistake(tmp_path: Path) -> None:
    result = CliRunner().invoke(commands, ["serve-scorer", str(tmp_path)])
    assert isinstance(result.exception, UserError)
    with pytest.raises(UserError, match=r"config\.json"):
        raise result.exception
