"""SC, claims 18 to 27: drift under mismatch. Later stages write the tables that judge them."""

from __future__ import annotations

from stepcredit.reporting.claims.rules import awaits

TABLES = {
    18: "drift",
    19: "drift",
    20: "drift",
    21: "stability",
    22: "stability",
    23: "stability",
    24: "stability",
    25: "stability_cost",
    26: "drift",
    27: "fingerprint",
}

for _claim, _table in TABLES.items():
    awaits(_claim, _table)
