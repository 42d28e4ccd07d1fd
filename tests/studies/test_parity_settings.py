import pytest

from stepcredit.provenance.errors import UserError
from stepcredit.studies.parity.audit import deal, surprises
from stepcredit.studies.parity.settings import AREAS, SETTINGS, choose_settings, on_platform


def test_every_setting_of_the_issue_is_there():
    names = SETTINGS.keys()
    for temperature in ("1.0", "0.8", "0.6"):
        assert {f"raw_t{temperature}", f"processed_t{temperature}"} <= names
    assert {"in_flight_keep_cleared", "in_flight_keep_stale", "in_flight_wait", "in_flight_abort"} <= names
    assert {setting.area for setting in SETTINGS.values()} == set(AREAS)


def test_raw_log_probs_are_known_to_be_right_at_temperature_one_alone():
    assert SETTINGS["raw_t1.0"].known == "good"
    assert SETTINGS["raw_t0.8"].known == SETTINGS["raw_t0.6"].known == "bad"


def test_the_noise_band_of_a_setting_is_that_of_its_coarsest_format():
    assert SETTINGS["sampler_bf16"].formats == ("bfloat16", "float32")
    assert SETTINGS["kv_fp8_e4m3"].formats == ("float32", "float32", "fp8_e4m3")
    assert SETTINGS["kv_bfloat16"].formats == ("float32", "float32")  # what it claims to store is no excuse


def test_settings_keep_the_order_of_the_audit_whatever_order_is_asked():
    chosen = choose_settings(["sampler_bf16", "raw_t0.8"])
    assert [setting.name for setting in chosen] == ["raw_t0.8", "sampler_bf16"]
    assert len(choose_settings(None)) == len(SETTINGS)


def test_a_setting_that_does_not_exist_is_named_with_the_nearest():
    with pytest.raises(UserError, match=r"raw_t0\.9 is not known \(did you mean raw_t0"):
        choose_settings(["raw_t0.9"])


def test_a_kv_type_is_garbage_on_a_cpu_alone():
    assert on_platform(SETTINGS["kv_nvfp4"], cpu=True).known == "bad"
    assert on_platform(SETTINGS["kv_nvfp4"], cpu=False).known == "lossy"
    assert on_platform(SETTINGS["raw_t0.8"], cpu=False).known == "bad"


def test_the_settings_of_one_engine_go_to_one_worker_and_each_goes_to_one():
    shares = deal(choose_settings(None), 2)
    assert sorted(name for share in shares for name in share) == sorted(SETTINGS)
    for names in shares:
        others = {SETTINGS[name].engine for share in shares if share is not names for name in share}
        offline = {SETTINGS[name].engine for name in names if SETTINGS[name].procedure != "served"}
        served = [name for name in SETTINGS if SETTINGS[name].procedure == "served"]
        assert offline.isdisjoint({engine for engine in others if engine not in {SETTINGS[s].engine for s in served}})
        assert set(served) <= set(names) or set(served).isdisjoint(names)


def test_what_contradicts_what_is_known_is_named():
    rows = [
        {"setting": "a", "known": "good", "verdict": "exact"},
        {"setting": "b", "known": "good", "verdict": "biased"},
        {"setting": "c", "known": "bad", "verdict": "numerical noise"},
        {"setting": "d", "known": "bad", "verdict": "broken"},
        {"setting": "e", "known": "lossy", "verdict": "biased"},
        {"setting": "f", "known": "bad", "verdict": "refused"},
    ]
    assert surprises(rows) == ["b", "c"]
