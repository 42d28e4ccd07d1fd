import numpy as np

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import Verdict
from stepcredit.credit.raw_reward import RawReward
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.rollouts import Completion, Group, Rollout


def test_every_token_gets_the_reward_itself():
    codec = TextCodec(build_tokenizer(20))
    rollouts = [
        Rollout((1, 2), Completion((5, 6, 7), (0.0,) * 3, True), "", Verdict(reward, None, True, "right"))
        for reward in (1.0, 0.0, 1.0)
    ]
    credit = RawReward(codec)
    [group], metrics = credit.assign([Group(Puzzle((1, 2, 3), 6), rollouts)])
    assert [rollout.group_advantage for rollout in group.rollouts] == [1.0, 0.0, 1.0]
    assert np.array_equal(group.rollouts[0].advantages, np.ones(3, dtype=np.float32))
    assert np.array_equal(group.rollouts[1].advantages, np.zeros(3, dtype=np.float32))
    assert metrics == {}
