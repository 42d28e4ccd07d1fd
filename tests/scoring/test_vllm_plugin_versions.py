"""A vLLM that the plugin was not written for is refused in a sentence, and never patched blindly."""

from __future__ import annotations

from typing import Any

import pytest
import vllm
from vllm.v1.core.kv_cache_manager import KVCacheManager

from stepcredit.scoring.vllm_plugin import PLUGIN_NAME, RESET_PATH, SCORE_PATH, UPDATE_PATH
from stepcredit.scoring.vllm_plugin.endpoint import check_guarded, make_plugin
from stepcredit.scoring.vllm_plugin.engine import install, register
from stepcredit.scoring.vllm_plugin.probe import judge_probe
from stepcredit.scoring.vllm_plugin.versions import UnsupportedVLLMError, incompatibility, installed_release


def test_the_installed_vllm_fits() -> None:
    assert incompatibility() is None


@pytest.mark.parametrize("version", ["0.31.2", "0.33.0", "1.0.0", "0.25.1+cu129", "dev"])
def test_another_release_is_refused_by_name(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "__version__", version)
    monkeypatch.setenv("VLLM_PLUGINS", f"other,{PLUGIN_NAME}")
    with pytest.raises(UnsupportedVLLMError, match=rf"vLLM {version.replace('+', '.')} .*supports 0\.26 and 0\.32"):
        register()


def test_another_projects_engine_is_left_alone(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    """vLLM loads all installed general plugins where VLLM_PLUGINS is not set."""
    monkeypatch.setattr(vllm, "__version__", "0.31.0")
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    before = KVCacheManager.get_computed_blocks
    register()
    assert KVCacheManager.get_computed_blocks is before
    assert "target-span scoring is off" in caplog.text


def test_a_changed_signature_is_refused_although_the_release_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def get_computed_blocks(self: Any, request: Any, limit: int) -> None: ...

    monkeypatch.setattr(KVCacheManager, "get_computed_blocks", get_computed_blocks)
    with pytest.raises(UnsupportedVLLMError, match=r"get_computed_blocks takes \(self, request, limit\)"):
        install()


def test_installing_twice_wraps_once() -> None:
    install()
    once = KVCacheManager.get_computed_blocks
    install()
    assert KVCacheManager.get_computed_blocks is once


def test_the_api_key_guards_every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    check_guarded()
    assert all(path.startswith("/inference/") for path in (SCORE_PATH, UPDATE_PATH, RESET_PATH))
    monkeypatch.setattr(f"{installed_release().guard_module}.GUARDED_PREFIX", ("/v1",))
    with pytest.raises(RuntimeError, match="outside"):
        check_guarded()


def test_an_engine_core_without_the_cap_is_found_out() -> None:
    judge_probe(cached_early=0, cached_late=32)
    with pytest.raises(RuntimeError, match="did not load the stepcredit plugin"):
        judge_probe(cached_early=32, cached_late=32)


def test_the_endpoint_is_what_vllm_asks_for() -> None:
    from vllm.plugins.endpoint_plugins.interface import EndpointPlugin

    assert isinstance(make_plugin(), EndpointPlugin)
