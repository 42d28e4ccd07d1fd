from stepcredit.seeds import batch_indices, derive_seed


def test_a_seed_depends_on_each_part_and_on_their_order():
    seeds = {derive_seed(1, "a", 2), derive_seed(2, "a", 1), derive_seed(1, "b", 2), derive_seed(12, "a")}
    assert len(seeds) == 4
    assert derive_seed(1, "a", 2) == derive_seed(1, "a", 2)
    assert all(0 <= seed < 2**48 for seed in seeds)


def test_each_pass_over_the_data_uses_every_item_once_in_another_order():
    first = [index for step in range(5) for index in batch_indices(10, 2, step, "data")]
    second = [index for step in range(5, 10) for index in batch_indices(10, 2, step, "data")]
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second


def test_a_batch_may_span_two_passes_and_be_larger_than_the_data():
    assert len(batch_indices(10, 4, 2, "data")) == 4
    assert sorted(batch_indices(3, 6, 0, "data")) == [0, 0, 1, 1, 2, 2]


def test_batches_do_not_depend_on_earlier_ones():
    assert batch_indices(10, 3, 7, 5, "data") == batch_indices(10, 3, 7, 5, "data")
