"""Tries, plans and the counting of scorings, with trees small enough to draw."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcredit.scoring.scorer import Scoring, ScoringRequest, deduplicate, minimum_by_blocks, minimum_tokens
from stepcredit.scoring.tree_plan import AnswerTree, Plan
from stepcredit.scoring.trie import ROOT, Trie

TEMPLATE = (1, 2)


def test_sequences_that_begin_alike_share_their_beginning() -> None:
    trie = Trie()
    assert trie.insert([5, 6, 7]) == [0, 1, 2]
    assert trie.insert([5, 6, 8, 9]) == [0, 1, 3, 4]
    assert trie.tokens == [5, 6, 7, 8, 9]
    assert trie.parents == [ROOT, 0, 1, 1, 3]
    assert trie.depths == [0, 1, 2, 2, 3]


def test_a_node_descends_from_itself_and_what_is_above_it_alone() -> None:
    trie = Trie()
    trie.insert([5, 6])
    trie.insert([5, 7])
    assert trie.ancestry().tolist() == [[True, False, False], [True, True, False], [True, False, True]]


def test_an_answer_tree_scores_each_token_from_the_node_before_it() -> None:
    tree = AnswerTree.build(TEMPLATE, [(3, 4, 9), (3, 9), (5,)])
    assert tree.tokens.tolist() == [1, 2, 3, 4]  # neither 9 nor 5 has a scored successor
    assert tree.depths.tolist() == [0, 1, 2, 3]
    assert tree.nodes.tolist() == [1, 2, 3, 1, 2, 1]
    assert tree.targets.tolist() == [3, 4, 9, 3, 9, 5]
    assert tree.starts.tolist() == [0, 3, 5]


def test_equal_scorings_of_different_requests_are_one() -> None:
    requests = [
        ScoringRequest((5, 6), (1, 2), TEMPLATE, ((3,), (4,))),
        ScoringRequest((5, 7), (1, 2), TEMPLATE, ((4,), (4,))),
    ]
    unique, positions = deduplicate(requests)
    assert unique[:2] == [Scoring((5, 1, 2, 3), 3), Scoring((5, 1, 2, 4), 3)]
    assert [position.tolist() for position in positions] == [[[0, 1], [2, 3]], [[1, 1], [4, 4]]]


def test_the_same_tokens_with_another_start_are_another_scoring() -> None:
    requests = [ScoringRequest((5,), (1,), (1, 2), ((3,),)), ScoringRequest((5,), (1,), (1,), ((2, 3),))]
    assert len(deduplicate(requests)[0]) == Plan(requests).unique == 2
    assert minimum_tokens(requests) == 3


def test_a_cache_of_whole_blocks_computes_the_last_block_before_a_span_again():
    # inputs 1 2 3 4 5 9 | 6 and the same again with 7: blocks of two before the first prediction, row 5: 1 2, 3 4
    request = ScoringRequest(trunk=(1, 2, 3, 4, 5), boundaries=(5,), template=(9,), answers=((6, 8), (7, 8)))
    assert minimum_tokens([request]) == 8
    assert minimum_by_blocks([request], 2) == 7 + (7 - 4)
    assert minimum_by_blocks([request], 4) == 7 + (7 - 4)
    assert minimum_by_blocks([request], 6) == 7 + 7  # a block that ends with row 5 would take the prediction with it
    assert minimum_by_blocks([request, request], 2) == 7 + (7 - 4)  # asked twice, computed once


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"boundaries": (3,)}, "within 0..2"),
        ({"boundaries": (-1,)}, "within 0..2"),
        ({"template": ()}, "template is empty"),
        ({"answers": ((3,), ())}, "without tokens"),
    ],
)
def test_a_request_that_cannot_be_scored_is_refused(fields: dict[str, object], complaint: str) -> None:
    request = {"trunk": (5, 6), "boundaries": (1,), "template": TEMPLATE, "answers": ((3,),)}
    with pytest.raises(ValueError, match=complaint):
        ScoringRequest(**(request | fields))  # type: ignore[arg-type]


def test_a_family_stays_in_one_chunk_where_it_fits() -> None:
    banks = [((3,), (4,)), ((5,),), ((6,),)]
    requests = [ScoringRequest((7, 8, rollout), (3,), TEMPLATE, bank) for bank in banks for rollout in range(2)]
    # Each job has 3 trunk tokens and a tree of the 2 template tokens: 5 tokens, a family 10.
    sizes = [[len(job) for job in chunk] for chunk in Plan(requests).chunks(10)]
    assert sizes == [[5, 5], [5, 5], [5, 5]]
    assert [len(chunk) for chunk in Plan(requests).chunks(25)] == [4, 2]
    assert [len(chunk) for chunk in Plan(requests).chunks(9)] == [1] * 6


tokens = st.integers(0, 2)
sequences = st.lists(tokens, min_size=1, max_size=4).map(tuple)


@st.composite
def request_batches(draw: st.DrawFn) -> list[ScoringRequest]:
    requests = []
    for _ in range(draw(st.integers(0, 4))):
        trunk = draw(st.lists(tokens, max_size=6).map(tuple))
        boundaries = draw(st.lists(st.integers(0, len(trunk)), max_size=4).map(tuple))
        template = draw(st.sampled_from([(0,), (1, 2)]))
        answers = draw(st.lists(sequences, max_size=4).map(tuple))
        requests.append(ScoringRequest(trunk, boundaries, template, answers))
    return requests


@settings(max_examples=200, deadline=None)
@given(request_batches())
def test_a_plan_agrees_with_the_sequences_written_out(requests: list[ScoringRequest]) -> None:
    plan = Plan(requests)
    unique, positions = deduplicate(requests)
    assert plan.unique == len(unique)
    trunks = (request.trunk[: max(request.boundaries)] for request in requests if len(request))
    assert len(plan.trie) == len({trunk[:end] for trunk in trunks for end in range(1, len(trunk) + 1)})
    renamed: dict[int, int] = {}
    for planned, listed in zip(plan.positions, positions, strict=True):
        assert planned.shape == listed.shape
        for slot, index in zip(planned.ravel().tolist(), listed.ravel().tolist(), strict=True):
            assert renamed.setdefault(slot, index) == index
    branches = [branch for jobs in plan.families for job in jobs for branch in job.branches]
    slots = [np.arange(branch.first, branch.first + len(branch.tree.starts)) for branch in branches]
    assert sorted(np.concatenate(slots).tolist() if slots else []) == list(range(plan.unique))
