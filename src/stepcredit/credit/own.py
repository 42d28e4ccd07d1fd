"""Schemes that a user adds: one file beside this one, named by an arm of the credit "own"."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from stepcredit.credit.scheme import CreditScheme
from stepcredit.credit.token_text import TokenText
from stepcredit.provenance.errors import UserError
from stepcredit.settings.arm import ArmSettings

Build = Callable[[ArmSettings, TokenText], CreditScheme]


def own_scheme(name: str) -> Build:
    """The function `build` of the module `stepcredit.credit.{name}`.

    Raises:
        UserError: the module has none.
    """
    module = importlib.import_module(f"{__package__}.{name}")
    build: Build | None = getattr(module, "build", None)
    if build is None:
        raise UserError(f"{module.__file__}: defines no build(arm, tokens), which an arm's own scheme needs")
    return build
