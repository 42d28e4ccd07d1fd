from stepcredit.losses import LOSSES
from stepcredit.studies.fingerprint_table import fingerprint_rows, gradient_rows


def test_every_loss_is_named_right_on_every_model_and_far_from_the_next():
    rows = list(fingerprint_rows(models=2))
    assert [row["loss"] for row in rows] == [*LOSSES, *LOSSES]
    for row in rows:
        assert row["named"] == row["loss"]
        assert row["distance"] < 1e-6
        assert row["next_distance"] > 1e-2


def test_sampled_centering_moves_the_sampled_and_the_drawn_tokens_and_reinforce_all():
    rows = list(gradient_rows())
    moved = {loss: {row["token"] for row in rows if row["loss"] == loss and row["moved"]} for loss in LOSSES}
    meant = {row["token"] for row in rows if row["loss"] == "sc_sampled" and row["role"] != "other"}
    assert moved["reinforce"] == set(range(40))
    assert moved["sc_sampled"] == meant
    assert len(meant) <= 9
    assert sum(row["draws"] for row in rows if row["loss"] == "sc_sampled") == 8
