"""Entry point of the group `vllm.general_plugins`, which vLLM calls in all of its processes."""

from __future__ import annotations

import logging
import os

from stepcredit.scoring.vllm_plugin import PLUGIN_NAME
from stepcredit.scoring.vllm_plugin.parent_watch import end_with_parent
from stepcredit.scoring.vllm_plugin.versions import UnsupportedVLLMError, incompatibility, require_supported


def register() -> None:
    """Put target-span scoring into this process's vLLM; a process that vLLM started ends with the one that did.

    vLLM loads every installed general plugin unless `VLLM_PLUGINS` says otherwise. So an unsupported vLLM
    that does not name this plugin (another project's engine in the same environment) is left as it is, with a
    warning.

    Raises:
        UnsupportedVLLMError: this vLLM is not supported, and `VLLM_PLUGINS` names this plugin.
    """
    asked_for = PLUGIN_NAME in os.environ.get("VLLM_PLUGINS", "").split(",")
    if asked_for:
        end_with_parent()
    problem = incompatibility()
    if problem is None:
        install()
    elif asked_for:
        raise UnsupportedVLLMError(problem)
    else:
        logging.getLogger(__name__).warning("%s; target-span scoring is off", problem)


def install() -> None:
    """Patch this process's vLLM, whatever `VLLM_PLUGINS` says; does nothing the second time.

    Raises:
        UnsupportedVLLMError: the installed vLLM does not fit.
    """
    require_supported()
    from stepcredit.scoring.vllm_plugin.cache_cap import cap_cache_hits
    from stepcredit.scoring.vllm_plugin.span_rows import compute_span_rows_only

    cap_cache_hits()
    compute_span_rows_only()
