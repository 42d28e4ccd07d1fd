import pytest

from stepcredit.rollouts import Completion
from stepcredit.sampling.in_flight import InFlightSampler

EOS = 0


class Scripted:
    """A sampler whose token is the version of its weights, and which ends prompt (1,) after two tokens."""

    def __init__(self):
        self.weights = 5
        self.calls = []

    def push_weights(self, model):
        self.weights = model

    def generate(self, prompts, *, seeds, temperature, max_new_tokens):
        self.calls.append((list(prompts), list(seeds), max_new_tokens))
        short = (self.weights, EOS)
        return [
            Completion(short, (-0.5, -0.1), True)
            if prompt == (1,)
            else Completion((self.weights,) * max_new_tokens, (-float(self.weights),) * max_new_tokens, False)
            for prompt in prompts
        ]


def with_an_update_under_way(update_after=3):
    """A sampler that has generated with weights 5, and whose update to 6 waits."""
    inner = Scripted()
    sampler = InFlightSampler(inner, update_after)
    generate(sampler)
    inner.calls.clear()
    sampler.push_weights(6)
    return inner, sampler


def generate(sampler, prompts=((1,), (2,)), cap=7):
    return sampler.generate(prompts, seeds=[10, 20], temperature=1.0, max_new_tokens=cap)


def test_the_update_lands_after_the_first_tokens_of_each_completion():
    inner, sampler = with_an_update_under_way()
    assert inner.weights == 5  # held back until it is in flight
    done, long = generate(sampler)
    assert done == Completion((5, EOS), (-0.5, -0.1), True, lag=1.0)
    assert long.token_ids == (5, 5, 5, 6, 6, 6, 6)
    assert long.logprobs == (-5.0,) * 3 + (-6.0,) * 4
    assert not long.finished
    assert long.lag == pytest.approx(3 / 7)  # three tokens one update behind, four of the newest
    assert inner.calls == [([(1,), (2,)], [10, 20], 3), ([(2, 5, 5, 5)], [21], 4)]


def test_without_an_update_under_way_it_is_the_inner_sampler():
    inner = Scripted()
    sampler = InFlightSampler(inner, update_after=3)
    generate(sampler)
    assert inner.calls == [([(1,), (2,)], [10, 20], 7)]


def test_an_update_lands_once():
    inner, sampler = with_an_update_under_way()
    generate(sampler)
    inner.calls.clear()
    generate(sampler)
    assert len(inner.calls) == 1


def test_an_update_is_not_lost_where_the_cap_comes_first():
    inner, sampler = with_an_update_under_way()
    assert generate(sampler, cap=3)[1].token_ids == (6, 6, 6)
    assert inner.weights == 6


def test_before_the_first_completion_nothing_is_in_flight():
    inner = Scripted()
    sampler = InFlightSampler(inner, update_after=3)
    sampler.push_weights(6)
    assert inner.weights == 6
    assert [completion.lag for completion in generate(sampler)] == [0, 0]
