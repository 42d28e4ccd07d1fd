"""PARITY, claims 28 to 32: sampler against trainer. A later stage writes the table that judges them."""

from __future__ import annotations

from stepcredit.reporting.claims.rules import awaits

for _claim in range(28, 33):
    awaits(_claim, "parity")
