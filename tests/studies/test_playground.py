"""The two-token model's formulas, and the fragment as it reads without JavaScript."""

import re
from html.parser import HTMLParser

import pytest

from stepcredit.losses import LOSSES
from stepcredit.studies.playground import axis_half_width, playground_html, signed
from stepcredit.studies.two_token import A_IS_BETTER, METHODS, SKEWED, SLIGHTLY_OFF, Setting, push, target


def by_hand(method: str, s: Setting) -> float:
    """sum_y q_y R_y (w_y s_y - c) with the weights of SC's appendix C, written out for two tokens."""
    score, q, rewards = (1 - s.p, -s.p), (s.q, 1 - s.q), (s.reward_a, s.reward_b)
    ratios = (s.p / s.q, (1 - s.p) / (1 - s.q))
    w = {
        "reinforce": (1.0, 1.0),
        "is": ratios,
        "tis": [min(r, s.cap) for r in ratios],
        "mis": [r if 0.5 <= r <= 5 else 0 for r in ratios],
        "sc": (1.0, 1.0),
        "tis_sc": [min(r, s.cap) for r in ratios],
    }[method]
    average = sum(q[i] * w[i] * score[i] for i in (0, 1)) if method.endswith("sc") else 0.0
    return sum(q[i] * rewards[i] * (w[i] * score[i] - average) for i in (0, 1))


@pytest.mark.parametrize("method", ["reinforce", "is", "tis", "mis", "sc", "tis_sc"])
def test_pushes_are_the_formulas_of_the_write_up(method):
    for p, q, reward_b, cap in [(0.5, 0.6, 1.0, 2.0), (0.3, 0.77, -0.4, 1.5), (0.9, 0.13, 0.5, 3.0)]:
        setting = Setting(p=p, q=q, reward_a=0.7, reward_b=reward_b, cap=cap)
        assert push(method, setting) == pytest.approx(by_hand(method, setting), abs=1e-9)


@pytest.mark.parametrize(
    ("setting", "pushes"),
    [
        (SLIGHTLY_OFF, {"reinforce": 0.1, "is": 0, "tis": 0, "mis": 0, "sc": 0, "tis_sc": 0}),
        (SKEWED, {"reinforce": 0.4, "is": 0, "tis": 0.15, "mis": 0, "sc": 0, "tis_sc": 0}),
        (A_IS_BETTER, {"reinforce": 0.45, "is": 0.25, "tis": 0.25, "sc": 0.09, "tis_sc": 0.115}),
    ],
)
def test_presets_give_the_numbers_of_the_write_up(setting, pushes):
    assert {method: push(method, setting) for method in pushes} == pytest.approx(pushes, abs=1e-6)


def test_tis_is_exact_until_its_cap_binds():
    # p = 0.5, cap 2: B's ratio 0.5 / (1 - q) passes 2 once q > 0.75
    assert push("tis", Setting(q=0.75)) == pytest.approx(0, abs=1e-12)
    assert push("tis", Setting(q=0.76)) > 1e-3
    assert push("tis", Setting(q=0.76, cap=3.0)) == pytest.approx(0, abs=1e-12)


def test_a_value_exactly_on_a_bound_is_kept():
    # 0.5 / (1 - 0.9) = 5 is MIS's bound, though floats say a little more; 0.6 / 0.5 is PPO's 1.2
    assert push("mis", SKEWED) == pytest.approx(0, abs=1e-9)
    assert push("ppo_clip", Setting(p=0.6, q=0.5)) == pytest.approx(0, abs=1e-9)
    # p - q = 0.2 is DPPO's: both terms stay, and only the squared log-ratio moves A, by less than 0.001
    assert abs(push("dppo_kl", Setting(p=0.7, q=0.5))) < 1e-3


def test_the_target_is_the_update_without_mismatch():
    assert target(Setting(p=0.3, reward_a=1.0, reward_b=-0.5)) == pytest.approx(0.3 * 0.7 * 1.5)
    for method in METHODS:
        setting = Setting(p=0.3, q=0.3, reward_a=1.0, reward_b=-0.5)
        assert push(method, setting) == pytest.approx(target(setting), abs=1e-9)


class Fragment(HTMLParser):
    """Ids, rows and numbers of the fragment as a reader without JavaScript gets them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.labelled: set[str] = set()
        self.inputs: list[str] = []
        self.updates: list[str] = []
        self._in_update = False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        self.labelled |= {values["for"]} if tag == "label" and "for" in values else set()
        self.inputs += [values["id"]] if tag == "input" and values["type"] == "range" else []
        self._in_update = "data-update" in values

    def handle_data(self, data):
        if self._in_update:
            self.updates.append(data)
            self._in_update = False


def test_without_javascript_the_first_numbers_stand_there():
    fragment = Fragment(playground_html(SKEWED))
    assert fragment.updates == [*(signed(push(method, SKEWED)) for method in METHODS), signed(0.0)]
    html = playground_html(SKEWED)
    for method in METHODS:
        assert LOSSES[method].label in html


def test_the_fragment_asks_nothing_of_the_network_and_keeps_to_its_own_names():
    html = playground_html()
    assert not re.search(r"https?:|src=|href=|url\(|@import|fetch\(|import\(", html)
    assert html.lstrip().startswith('<div id="playground-root"')
    assert html.rstrip().endswith("</div>")
    fragment = Fragment(html)
    assert all(name.startswith("playground-") for name in fragment.ids)
    assert len(set(fragment.ids)) == len(fragment.ids)
    style = html.split("<style>")[1].split("</style>")[0]
    selectors = re.findall(r"(?m)^\s*([^@\s{}][^{}]*)\{", style)
    assert selectors
    assert all(part.strip().startswith("#playground-root") for rule in selectors for part in rule.split(","))


def test_every_slider_has_a_label_and_its_value_spelt_out():
    fragment = Fragment(playground_html())
    assert len(fragment.inputs) == 5
    assert set(fragment.inputs) <= fragment.labelled
    assert {f"{name}-value" for name in fragment.inputs} <= set(fragment.ids)


def test_numbers_have_a_sign_and_zero_has_none():
    assert [signed(x) for x in (0.1, -0.25, 0.0004, -0.0004, -0.0)] == [
        "+0.100",
        "−0.250",
        "0.000",
        "0.000",
        "0.000",
    ]


def test_the_axis_holds_the_largest_bar():
    assert [axis_half_width([0.1, -x]) for x in (0.2, 0.25, 0.26, 0.9)] == [0.25, 0.25, 0.5, 1.0]
