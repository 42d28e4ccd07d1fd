"""What every part of the configuration is made of."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME_PATTERN = r"^[a-z][a-z0-9_]*$"

Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(gt=0)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)

    def canonical_json(self) -> str:
        """The section as JSON with sorted keys: what a rule puts into `params` and a stage reads back."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
