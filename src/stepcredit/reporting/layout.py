"""Where the files of a run are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunLayout:
    """Paths under the output directory of a run (docs/results.md describes each file)."""

    root: Path

    @property
    def funnel(self) -> Path:
        return self.root / "data" / "funnel.csv"

    def split(self, name: str) -> Path:
        return self.root / "data" / "splits" / f"{name}.parquet"

    def sft(self, name: str) -> Path:
        return self.root / "sft" / f"{name}.parquet"

    def sweep(self, learning_rate: float, name: str) -> Path:
        return self.root / "sweep" / f"lr{learning_rate}" / f"{name}.parquet"

    @property
    def best_learning_rate(self) -> Path:
        return self.root / "sweep" / "best.json"

    def rl(self, arm: str, seed: int, name: str) -> Path:
        return self.root / "rl" / arm / f"seed{seed}" / f"{name}.parquet"

    def parity(self, model: str) -> Path:
        return self.root / "parity" / f"{model}.parquet"

    def ablation(self, run: str) -> Path:
        """Metrics of a run of the parity ablation."""
        return self.root / "parity" / "ablation" / run / "metrics.parquet"

    @property
    def sft_evaluation(self) -> Path:
        return self.root / "eval" / "sft" / "step0.parquet"

    def evaluation(self, arm: str, seed: int, step: int) -> Path:
        """Held-out rollouts; step 0 of every arm is the SFT checkpoint."""
        if step == 0:
            return self.sft_evaluation
        return self.root / "eval" / arm / f"seed{seed}" / f"step{step}.parquet"

    def stability(self, name: str) -> Path:
        """A file of the mismatch experiment by its path without suffix, such as `drift/start`."""
        return self.root / "stability" / f"{name}.parquet"

    def stability_run(self, mismatch: str, method: str, rewards: str, seed: int, name: str) -> Path:
        return self.stability(f"runs/{mismatch}/{method}/{rewards}/seed{seed}/{name}")

    @property
    def playground(self) -> Path:
        return self.root / "stability" / "fingerprint" / "playground.html"

    def signal(self, arm: str | None = None, seed: int = 0, step: int = 0) -> Path:
        """Boundaries of a checkpoint; without an arm those of the SFT checkpoint."""
        return self.root / "signal" / (f"{arm}/seed{seed}" if arm else "sft") / f"step{step}.parquet"

    def scoring(self, name: str) -> Path:
        """A file of the scoring study: `run`, `large` or `steps`."""
        return self.root / "scoring" / f"{name}.parquet"

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    @property
    def figures(self) -> Path:
        return self.root / "figures"

    @property
    def claims(self) -> Path:
        return self.root / "claims.json"

    def manifests(self) -> list[Path]:
        """Manifests of all stages but the report, which is written after it was made."""
        found = {*self.root.glob("**/manifest.json"), *self.root.glob("**/*.manifest.json")}
        return sorted(found - {self.root / "report.manifest.json"})
