from stepcredit.training.microbatches import microbatches


def test_parts_hold_every_member_once_and_respect_the_limit():
    members = ["a" * length for length in (34, 7, 12, 16, 5, 64)]
    parts = list(microbatches(members, len, 40))
    assert sorted(len(member) for part in parts for member in part) == [5, 7, 12, 16, 34, 64]
    assert all(sum(map(len, part)) <= 40 or len(part) == 1 for part in parts)
    assert [len(part) for part in parts] == [4, 1, 1]


def test_nothing_has_no_parts():
    assert list(microbatches([], len, 40)) == []
