"""A real server with the plugin: its scores against plain forwards, under all that could spoil them."""

from __future__ import annotations

import http.client
import json
import random
import re
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_qwen3 import MAX_LENGTH, VOCABULARY, build_checkpoint, flat, plain_score, plain_scores, workload

from stepcredit.provenance.errors import UserError
from stepcredit.scoring.http import GENERATE_PATH, http_scorer
from stepcredit.scoring.scorer import minimum_tokens
from stepcredit.scoring.server import ScorerServer, ServerSettings
from stepcredit.scoring.transport import HttpClient, ServerError
from stepcredit.scoring.vllm_plugin import RESET_PATH, SCORE_PATH, UPDATE_PATH
from stepcredit.scoring.vllm_plugin.batch import pack_tokens
from stepcredit.scoring.vllm_plugin.span import SPAN_KEY

TOLERANCE = 1e-4
# 2 prompts x 8 rollouts x 10 boundaries x 8 answers = 1,280 scorings, 1,022 of them unique.
WORKLOAD = workload(seed=2, rollouts=8) + workload(seed=12, rollouts=8)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def models(directory: Path) -> dict[str, Any]:
    torch.set_num_threads(1)
    return {name: build_checkpoint(directory / name, seed) for seed, name in enumerate(("first", "second"))}


@pytest.fixture(scope="module")
def expected(models: dict[str, Any]) -> dict[str, npt.NDArray[np.float64]]:
    return {name: plain_scores(model, WORKLOAD) for name, model in models.items()}


@pytest.fixture(scope="module")
def server(directory: Path, models: dict[str, Any]) -> Iterator[ScorerServer]:
    settings = ServerSettings(
        dtype="float32",
        max_model_len=MAX_LENGTH,
        kv_cache_mib=32,
        max_concurrent=128,
        max_batched_tokens=1024,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("STEPCREDIT_MAX_SEQUENCES", "600")
        patch.setenv("STEPCREDIT_MAX_BODY_MIB", "1")
        running = ScorerServer(directory / "first", settings, log_path=directory / "server.log")
        with running:
            yield running
    assert running.death() is not None


def worst(server: ScorerServer, kind: Any, wanted: npt.NDArray[np.float64]) -> tuple[float, Any]:
    """Largest error of a scorer on the workload, and its cost."""
    matrices, cost = http_scorer(kind, server.client()).score(WORKLOAD)
    assert len(wanted) == cost.scorings >= 1000
    return float(np.abs(flat(matrices) - wanted).max()), cost


def status_of(server: ScorerServer, method: str, path: str, body: bytes, key: str | None = "") -> tuple[int, Any]:
    """Status and answer of a raw request; the key is the server's own where empty."""
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]), timeout=60)
    headers = {} if key is None else {"Authorization": f"Bearer {key or server.api_key}"}
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null")
    finally:
        connection.close()


# -- right numbers ----------------------------------------------------------------------------------------


def test_naive_and_batched_agree_with_a_plain_forward(server: ScorerServer, expected: dict[str, Any]) -> None:
    for kind in ("naive", "batched"):
        error, cost = worst(server, kind, expected["first"])
        assert error < TOLERANCE
        assert cost.tokens_cached == 0


def test_cached_agrees_cold_and_warm_and_computes_little(server: ScorerServer, expected: dict[str, Any]) -> None:
    server.reset_prefix_cache()
    error, cold = worst(server, "cached", expected["first"])
    assert error < TOLERANCE
    assert cold.tokens_computed <= 2.2 * minimum_tokens(WORKLOAD)
    assert cold.requests >= 2  # the server's limits split the batch
    for _ in range(2):
        error, warm = worst(server, "cached", expected["first"])
        assert error < TOLERANCE
        assert warm.tokens_computed <= cold.tokens_computed


def test_nothing_stale_survives_a_weight_update(server: ScorerServer, directory: Path, expected: Any) -> None:
    """Several updates: a tied lm_head that is not packed anew drifts further off with each."""
    for name in ("second", "first", "second", "first"):
        server.update_weights(directory / name)
        for _ in range(2):
            error, _ = worst(server, "cached", expected[name])
            assert error < TOLERANCE, name


def test_spans_anywhere_in_a_sequence_are_scored(server: ScorerServer, models: dict[str, Any]) -> None:
    draw = random.Random(1)
    sequences = [[draw.randrange(VOCABULARY) for _ in range(MAX_LENGTH)] for _ in range(3)]
    spans = [[1, 2], [1, MAX_LENGTH], [MAX_LENGTH - 1, MAX_LENGTH], [32, 33], [33, 40], [31, 97], [200, 201]]
    fields = {"token_ids": [row for row in sequences for _ in spans], "target_spans": spans * 3}
    for use_cache in (True, True, False):
        found = server.client().post(SCORE_PATH, fields | {"use_cache": use_cache}).fields["logprobs"]
        wanted = [plain_score(models["first"], row, *span) for row in sequences for span in spans]
        # A span of the whole sequence sums a thousand log-probs of several nats each.
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=TOLERANCE)


def test_fifty_clients_amid_sampling_and_mistakes_get_their_own_scores(
    server: ScorerServer, expected: dict[str, Any]
) -> None:
    wanted = np.split(expected["first"], len(WORKLOAD))

    def scores(index: int) -> None:
        which = index % len(WORKLOAD)
        kind: Any = "batched" if index % 5 == 0 else "cached"
        matrices, _ = http_scorer(kind, server.client()).score([WORKLOAD[which]])
        np.testing.assert_allclose(flat(matrices), wanted[which], rtol=0, atol=TOLERANCE)

    def samples(index: int) -> None:
        parameters = {"max_tokens": 60, "temperature": 1.0, "ignore_eos": True}
        prompt = list(WORKLOAD[index % len(WORKLOAD)].trunk[:100])
        client = server.client()
        reply = client.post(GENERATE_PATH, {"token_ids": prompt, "sampling_params": parameters})
        assert len(reply.fields["choices"][0]["token_ids"]) == 60

    def mistakes(index: int) -> None:
        with pytest.raises(ServerError, match="400"):
            server.client().post(SCORE_PATH, {"token_ids": [[1, 2]], "target_spans": [[0, index + 1]]})

    kinds: list[Callable[[int], None]] = [scores] * 50 + [samples] * 12 + [mistakes] * 12
    random.Random(2).shuffle(kinds)
    with ThreadPoolExecutor(len(kinds)) as pool:
        running: list[Future[None]] = [pool.submit(kind, index) for index, kind in enumerate(kinds)]
        for future in running:
            future.result(timeout=120)


# -- mistakes, refusals, aborts ---------------------------------------------------------------------------


def malformed_bodies() -> list[bytes]:
    """Bodies that are one mistake away from a right one, and some that are further."""
    draw = random.Random(3)
    right = {"token_ids": [[1, 2, 3, 4]], "target_spans": [[1, 3]]}
    spans: list[Any] = [
        [0, 2],
        [2, 2],
        [3, 1],
        [1, 5],
        [-1, 2],
        [1.0, 2],
        ["1", 2],
        [1],
        [1, 2, 3],
        None,
        "12",
        True,
    ]
    tokens: list[Any] = [-1, VOCABULARY, 10**12, 1.5, "a", None, True, [1], float("nan"), float("inf")]
    bodies = [json.dumps(right | {"target_spans": [span]}).encode() for span in spans]
    for _ in range(130):
        row = [1, 2, 3, 4]
        row[draw.randrange(4)] = draw.choice(tokens)
        bodies.append(json.dumps(right | {"token_ids": [row]}).encode())
    packed = pack_tokens([[1, 2, 3, 4]]) | {"target_spans": [[1, 3]]}
    for _ in range(50):
        wrong = packed | {"lengths": [draw.choice([0, 1, 3, 5, -4, 2**40, True, None, "4", 4.0])]}
        bodies.append(json.dumps(wrong).encode())
    bodies += [
        b"",
        b"[]",
        b"{}",
        b"null",
        b"\xff",
        b"{" * 1000,
        b'"token_ids"',
        json.dumps(right)[:-5].encode(),
    ]
    bodies += [json.dumps(right | extra).encode() for extra in ({"use_cache": 1}, {"n": 1}, {"token_ids": [[]]})]
    bodies.append(json.dumps({"token_ids": [[1] * (MAX_LENGTH + 1)], "target_spans": [[1, 2]]}).encode())
    bodies.append(json.dumps({"token_ids": [[1, 2]] * 601, "target_spans": [[1, 2]] * 601}).encode())
    bodies.append(b" " * (2**20 + 1))
    bodies += [json.dumps({"token_ids": right["token_ids"]}).encode(), json.dumps(right | packed).encode()]
    return bodies


def test_two_hundred_malformed_requests_are_all_refused_with_a_reason(server: ScorerServer) -> None:
    bodies = malformed_bodies()
    assert len(bodies) >= 200
    for body in bodies:
        status, answer = status_of(server, "POST", SCORE_PATH, body)
        assert 400 <= status < 500, (status, body[:200])
        assert answer["error"]["message"]
        assert "logprobs" not in answer
    status, answer = status_of(server, "POST", SCORE_PATH, b'{"token_ids": [[1, 2]], "target_spans": [[1, 2]]}')
    assert status == 200
    assert len(answer["logprobs"]) == 1


@pytest.mark.parametrize("key", [None, "wrong"])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", SCORE_PATH), *(("POST", p) for p in (SCORE_PATH, UPDATE_PATH, RESET_PATH))]
)
def test_every_path_asks_for_the_api_key(server: ScorerServer, method: str, path: str, key: str | None) -> None:
    assert status_of(server, method, path, b"{}", key)[0] == 401


@pytest.mark.parametrize("mark", ["x", [0], [3, 10**9], [2, VOCABULARY], [[1]], {}])
def test_a_forged_mark_does_no_harm_to_the_engine(server: ScorerServer, models: dict[str, Any], mark: Any) -> None:
    tokens = list(range(10, 80))
    parameters = {
        "max_tokens": 1,
        "prompt_logprobs": 1,
        "extra_args": {SPAN_KEY: mark},
        "skip_reading_prefix_cache": False,
    }
    for _ in range(2):
        reply = server.client().post(GENERATE_PATH, {"token_ids": tokens, "sampling_params": parameters})
        rows = reply.fields["prompt_logprobs"]
        total = sum(rows[position][str(tokens[position])]["logprob"] for position in range(1, len(tokens)))
        assert total == pytest.approx(plain_score(models["first"], tokens, 1, len(tokens)), rel=1e-5)


def test_a_client_that_leaves_frees_the_engine(server: ScorerServer) -> None:
    scorings = [scoring for request in WORKLOAD for scoring in request.scorings()][:500]
    fields = pack_tokens([scoring.tokens for scoring in scorings]) | {
        "target_spans": [[scoring.start, len(scoring.tokens)] for scoring in scorings],
        "use_cache": False,
    }
    body = json.dumps(fields).encode()
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST {SCORE_PATH} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.api_key}\r\n"
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        time.sleep(0.15)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            server.reset_prefix_cache()  # refused while anything runs
            break
        except ServerError:
            time.sleep(0.1)
    else:
        pytest.fail("the engine is still busy")


def test_a_checkpoint_of_nan_gives_errors_and_no_numbers(server: ScorerServer, directory: Path) -> None:
    shutil.copytree(directory / "first", directory / "nan")
    tensors = load_file(directory / "first" / "model.safetensors")
    tensors["model.norm.weight"][0] = float("nan")
    save_file(tensors, directory / "nan" / "model.safetensors", {"format": "pt"})
    server.update_weights(directory / "nan")
    try:
        for kind in ("cached", "batched"):
            with pytest.raises(ServerError, match="no finite log-probability") as caught:
                http_scorer(kind, server.client()).score(WORKLOAD[:1])  # type: ignore[arg-type]
            assert caught.value.status == 500
    finally:
        server.update_weights(directory / "first")


def test_an_update_that_cannot_be_leaves_the_weights_alone(
    server: ScorerServer, directory: Path, expected: Any
) -> None:
    (directory / "empty").mkdir()
    for wrong in (directory / "missing", directory / "empty"):
        with pytest.raises(ServerError, match="no checkpoint") as caught:
            server.update_weights(wrong)
        assert caught.value.status == 400
    for body in (b"", b"[]", b"{}", b'{"directory": 3}'):
        assert status_of(server, "POST", UPDATE_PATH, body)[0] == 400
    assert worst(server, "cached", expected["first"])[0] < TOLERANCE


def test_after_a_failed_update_nothing_is_scored_until_one_succeeds(
    server: ScorerServer, directory: Path, expected: dict[str, Any]
) -> None:
    shutil.copytree(directory / "second", directory / "partial")
    tensors = load_file(directory / "second" / "model.safetensors")
    del tensors["model.layers.1.mlp.down_proj.weight"]
    save_file(tensors, directory / "partial" / "model.safetensors", {"format": "pt"})
    with pytest.raises(ServerError, match="down_proj"):
        server.update_weights(directory / "partial")
    with pytest.raises(ServerError, match="could not be replaced") as caught:
        http_scorer("cached", server.client()).score(WORKLOAD[:1])
    assert caught.value.status == 503
    server.update_weights(directory / "first")
    assert worst(server, "cached", expected["first"])[0] < TOLERANCE


def test_a_directory_without_a_model_is_no_server(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"config\.json"):
        ScorerServer(tmp_path)


def test_the_server_listens_on_loopback_only(server: ScorerServer) -> None:
    port = int(server.url.rsplit(":", 1)[1])
    listening = [
        connection.laddr.ip
        for process in _processes(server)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
    ]
    assert listening == ["127.0.0.1"]


# -- the end: this test kills the server ------------------------------------------------------------------


def test_a_server_killed_in_the_middle_of_a_batch_is_an_error(server: ScorerServer, expected: Any) -> None:
    """No wrong number, no hang, no process left. The last test, as the server is gone after it."""
    processes = _processes(server)
    core = next(process for process in processes if "EngineCore" in process.name() + " ".join(process.cmdline()))
    done = threading.Event()

    def keep_scoring() -> str:
        scorer = http_scorer("batched", server.client(timeout=60))
        while not done.is_set():
            try:
                matrices, _ = scorer.score(WORKLOAD)
            except ServerError as error:
                return str(error)
            np.testing.assert_allclose(flat(matrices), expected["first"], rtol=0, atol=TOLERANCE)
        return ""

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(keep_scoring) for _ in range(4)]
        time.sleep(1.0)
        core.send_signal(signal.SIGKILL)
        try:
            messages = [future.result(timeout=90) for future in futures]
        finally:
            done.set()
    for message in messages:
        assert re.search("EngineCore|scorer server|connection", message)
    server.stop()
    _, left = psutil.wait_procs(processes, timeout=30)
    assert left == []
    with pytest.raises(ServerError, match="was stopped"):
        HttpClient(server.url, explain=server.death).get(SCORE_PATH)


def _processes(server: ScorerServer) -> list[psutil.Process]:
    """The supervisor, the API server, the engine core and its workers."""
    assert server.process_id is not None
    supervisor = psutil.Process(server.process_id)
    return [supervisor, *supervisor.children(recursive=True)]
