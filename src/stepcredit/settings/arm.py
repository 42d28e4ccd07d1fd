"""An arm: how its credit is assigned, and who scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from stepcredit.settings.section import Name, Positive, Rate, Section


class ScorerSettings(Section):
    """Which model scores the answers, and how.

    `frozen`: the SFT checkpoint; `moving`: the current policy; `average`: a moving average of the policy's weights.
    """

    model: Literal["frozen", "moving", "average"]
    kind: Literal["tree", "engine", "cached", "batched", "naive"] = "tree"
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """Of the moving average: the share of itself that it keeps at each step."""

    @model_validator(mode="after")
    def _engine_moves(self) -> ScorerSettings:
        if self.kind == "engine" and self.model != "moving":
            raise ValueError(
                'kind "engine" scores with the sampler\'s engine, which holds the policy, so the scorer moves;'
                ' for another one take "tree" or "cached"'
            )
        return self


class ShapingSettings(Section):
    """Shaping by a potential (SPEC section 4); the defaults are the write-up's method as it stands."""

    beta: float = 0.1
    gamma: float = 0.99
    temperature: Rate = 1.0
    clip: Rate = 5.0
    max_paragraph_len: Positive | None = 32
    """Longest paragraph in tokens (128 at paper scale); null: no guard against reward hacking."""
    unit: Literal["paragraph", "sentence"] = "paragraph"
    """What is credited: what blank lines part, or sentences too."""
    reference_answer: Literal["never", "all_incorrect", "always"] = "never"
    """Groups whose bank holds a reference answer among the correct ones."""
    leave_own_out: bool = False
    """Leave the rollout's own answer out of the bank that it is scored with."""
    length_normalised: bool = False
    """Divide an answer's log-likelihood by its number of tokens."""
    first_paragraph: Literal["empty_reasoning", "prompt", "unshaped"] = "empty_reasoning"
    """What the first paragraph is measured from: an empty reasoning, the prompt alone, or nothing."""
    closing_tag: bool = False
    """Whether `</reasoning>` carries the shaping of the last paragraph."""
    well_formed_only: bool = False
    """Whether malformed and truncated rollouts keep the group advantage alone."""
    continuations: Positive = 4
    """Of `prefix_value`: how many are sampled at each boundary."""


class ArmSettings(Section):
    """A named RL configuration."""

    label: str
    credit: Literal[
        "group_advantage", "raw_reward", "contrastive_potential", "reference_likelihood", "prefix_value", "own"
    ]
    scheme: Name | None = None
    """Of the credit "own": the scheme that `stepcredit/credit/{scheme}.py` builds (docs/howto/credit-scheme.md)."""
    scorer: ScorerSettings | None = None
    shaping: ShapingSettings | None = None
    question: str | None = None
    """What an arm beside the main ones asks: the report shows it under failure modes and open questions."""
    seeds: Positive | None = None
    """How many of the seeds at most, the first ones; null: all."""
    steps: Annotated[list[Positive], Field(min_length=1)] | None = None
    """Some of the evaluated steps, the last one among them; null: all."""

    @model_validator(mode="after")
    def _scheme_exists(self) -> ArmSettings:
        if (self.credit == "own") != (self.scheme is not None):
            raise ValueError('credit "own" needs the name of a scheme, and no other credit takes one')
        if self.scheme is not None and not (Path(__file__).parents[1] / "credit" / f"{self.scheme}.py").is_file():
            raise ValueError(f'scheme is "{self.scheme}", but the package has no file credit/{self.scheme}.py')
        return self

    @property
    def own_modules(self) -> tuple[str, ...]:
        """Modules of the package that only this arm runs, for its code digest."""
        return (f"credit.{self.scheme}",) if self.scheme else ()

    @model_validator(mode="after")
    def _scorer_fits_credit(self) -> ArmSettings:
        if self.credit in ("group_advantage", "raw_reward") and (self.scorer or self.shaping):
            raise ValueError(f'credit "{self.credit}" takes no scorer and no shaping')
        if self.credit in ("contrastive_potential", "reference_likelihood") and not (self.scorer and self.shaping):
            raise ValueError(f'credit "{self.credit}" needs a scorer and shaping')
        if self.credit == "prefix_value" and (self.scorer or not self.shaping):
            raise ValueError('credit "prefix_value" needs shaping and takes no scorer: it samples')
        return self
