"""Clients against servers that answer oddly, slowly or not at all: an error, never a number, never a hang."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from stepcredit.scoring.http import BatchedScorer, NaiveScorer, http_scorer
from stepcredit.scoring.scorer import ScoringRequest
from stepcredit.scoring.transport import HttpClient, ServerError
from stepcredit.scoring.vllm_plugin import SCORE_PATH

DESCRIPTION = {"max_sequences": 100, "max_body_bytes": 10**6}
REQUEST = ScoringRequest(trunk=(1, 2, 3), boundaries=(1, 3), template=(4,), answers=((5, 6), (7,)))
# Its four scorings: 1 4 | 5 6, 1 4 | 7, 1 2 3 4 | 5 6, 1 2 3 4 | 7.
GOOD = {"logprobs": [-1.0, -2.0, -3.0, -4.0], "cached_tokens": [0, 0, 0, 3], "computed_tokens": 11}


class Server:
    """Answers POST with what `answer` makes of the fields: a status and a body; None cuts the connection."""

    def __init__(self) -> None:
        self.answer: Callable[[dict[str, Any]], tuple[int, Any] | None] = lambda _: (200, GOOD)
        self.description: dict[str, Any] = DESCRIPTION
        self.requests: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.reply(200, outer.description)

            def do_POST(self) -> None:
                fields = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(fields | {"authorization": self.headers.get("Authorization")})
                reply = outer.answer(fields)
                if reply is None:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                else:
                    self.reply(*reply)

            def reply(self, status: int, body: Any) -> None:
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


def score(server: Server, **options: Any) -> Any:
    return BatchedScorer(HttpClient(server.url, **options), use_cache=True).score([REQUEST])


def test_scores_come_back_as_boundaries_by_answers(server: Server) -> None:
    matrices, cost = score(server, api_key="secret")
    np.testing.assert_array_equal(matrices[0], [[-1.0, -2.0], [-3.0, -4.0]])
    assert (cost.scorings, cost.scorings_unique, cost.requests) == (4, 4, 1)
    assert (cost.tokens_computed, cost.tokens_cached) == (11, 3)
    sent = server.requests[0]
    assert sent["target_spans"] == [[2, 4], [2, 3], [4, 6], [4, 5]]
    assert sent["lengths"] == [4, 3, 6, 5]
    assert sent["use_cache"] is True
    assert sent["authorization"] == "Bearer secret"


def test_duplicates_are_sent_once(server: Server) -> None:
    server.answer = lambda _: (200, {"logprobs": [-1.0], "cached_tokens": [0], "computed_tokens": 2})
    twice = ScoringRequest(trunk=(1,), boundaries=(1, 1), template=(4,), answers=((5,), (5,)))
    matrices, cost = BatchedScorer(HttpClient(server.url), use_cache=False).score([twice, twice])
    for matrix in matrices:
        np.testing.assert_array_equal(matrix, [[-1.0, -1.0], [-1.0, -1.0]])
    assert (cost.scorings, cost.scorings_unique) == (8, 1)
    assert server.requests[0]["use_cache"] is False


def test_no_request_at_all_is_fine(server: Server) -> None:
    matrices, cost = BatchedScorer(HttpClient(server.url), use_cache=True).score([])
    assert matrices == []
    assert cost.requests == 0


@pytest.mark.parametrize("limit", [{"max_sequences": 2}, {"max_body_bytes": 200}])
def test_a_batch_beyond_the_servers_limits_is_sent_in_parts(server: Server, limit: dict[str, int]) -> None:
    server.description = DESCRIPTION | limit

    def first_lengths(fields: dict[str, Any]) -> tuple[int, Any]:
        number = len(fields["lengths"])
        assert len(json.dumps(fields)) <= server.description["max_body_bytes"] or number == 1
        scores = [-float(length) for length in fields["lengths"]]
        return 200, {"logprobs": scores, "cached_tokens": [0] * number, "computed_tokens": number}

    server.answer = first_lengths
    matrices, cost = score(server)
    np.testing.assert_array_equal(matrices[0], [[-4.0, -3.0], [-6.0, -5.0]])
    assert cost.requests == len(server.requests) >= 2


ODD: dict[str, Any] = {
    "no object": [],
    "no JSON": b"<html>",
    "empty": b"",
    "nothing in it": {},
    "a score too few": GOOD | {"logprobs": [-1.0, -2.0, -3.0]},
    "a score too many": GOOD | {"logprobs": [-1.0] * 5},
    "a null score": GOOD | {"logprobs": [-1.0, None, -3.0, -4.0]},
    "a NaN score": GOOD | {"logprobs": [-1.0, float("nan"), -3.0, -4.0]},
    "an infinite score": GOOD | {"logprobs": [-1.0, -float("inf"), -3.0, -4.0]},
    "a positive score": GOOD | {"logprobs": [-1.0, 0.5, -3.0, -4.0]},
    "a score in text": GOOD | {"logprobs": [-1.0, "-2.0", -3.0, -4.0]},
    "a hit past the start": GOOD | {"cached_tokens": [2, 0, 0, 0]},
    "a negative hit": GOOD | {"cached_tokens": [-1, 0, 0, 0]},
    "no count": GOOD | {"computed_tokens": None},
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
def test_an_odd_answer_is_an_error(server: Server, body: Any) -> None:
    server.answer = lambda _: (200, body)
    with pytest.raises(ServerError):
        score(server)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 500, 503])
def test_a_refusal_is_told_with_its_reason_and_not_repeated(server: Server, status: int) -> None:
    server.answer = lambda _: (status, {"error": {"message": "the span starts at 0", "code": status}})
    with pytest.raises(ServerError, match="the span starts at 0") as caught:
        score(server)
    assert caught.value.status == status
    assert len(server.requests) == 1


def test_a_cut_connection_is_tried_again(server: Server) -> None:
    replies: list[tuple[int, Any] | None] = [None, None, (200, GOOD)]
    server.answer = lambda _: replies.pop(0)
    matrices, _ = score(server)
    assert matrices[0][1, 1] == -4.0
    assert len(server.requests) == 3


def test_cut_connections_end_in_an_error(server: Server) -> None:
    server.answer = lambda _: None
    with pytest.raises(ServerError, match="failed 3 times"):
        score(server, attempts=3)


def test_a_server_that_is_gone_is_told_by_its_owner(server: Server) -> None:
    server.answer = lambda _: None
    with pytest.raises(ServerError, match="killed by the kernel"):
        score(server, explain=lambda: "killed by the kernel")
    assert len(server.requests) == 1


def test_a_refused_connection_ends_in_an_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        client = HttpClient(f"http://127.0.0.1:{unused.getsockname()[1]}", attempts=2)
        with pytest.raises(ServerError, match="refused"):
            client.get(SCORE_PATH)


def test_a_silent_server_does_not_hang_the_client(server: Server) -> None:
    release = threading.Event()

    def silent(_: Any) -> tuple[int, Any]:
        release.wait(10)
        return 200, GOOD

    server.answer = silent
    started = time.monotonic()
    with pytest.raises(ServerError, match=r"no answer in 0\.2 s"):
        score(server, timeout=0.2)
    release.set()
    assert time.monotonic() - started < 5
    assert len(server.requests) == 1


def test_a_url_with_a_path_or_without_a_scheme_is_refused() -> None:
    for url in ("http://127.0.0.1:1/v1", "127.0.0.1:80", "https://127.0.0.1:1", ""):
        with pytest.raises(ValueError, match="http://host:port"):
            HttpClient(url)


# -- the naive scorer ------------------------------------------------


def prompt_logprobs(fields: dict[str, Any]) -> list[Any]:
    """What vLLM answers: nothing for the first token, then log-probs of the token and of the best."""
    tokens = fields["token_ids"]
    return [
        None,
        *({str(token): {"logprob": -float(token)}, "99": {"logprob": -0.1}} for token in tokens[1:]),
    ]


def test_naive_sums_over_the_answers_tokens_only(server: Server) -> None:
    server.answer = lambda fields: (200, {"prompt_logprobs": prompt_logprobs(fields)})
    matrices, cost = NaiveScorer(HttpClient(server.url)).score([REQUEST])
    np.testing.assert_array_equal(matrices[0], [[-11.0, -7.0], [-11.0, -7.0]])
    assert cost.requests == cost.scorings == 4
    assert cost.tokens_computed == 4 + 3 + 6 + 5
    assert cost.bytes > 0
    assert server.requests[0]["sampling_params"]["prompt_logprobs"] == 1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda rows: None,
        lambda rows: rows[:-1],
        lambda rows: [*rows[:-1], None],
        lambda rows: [*rows[:-1], {"99": {"logprob": -0.1}}],
        lambda rows: [*rows[:-1], {key: {"logprob": -9999.0} for key in rows[-1]}],
        lambda rows: [*rows[:-1], {key: {"logprob": None} for key in rows[-1]}],
        lambda rows: [*rows[:-1], {key: {} for key in rows[-1]}],
    ],
)
def test_naive_does_not_guess_at_missing_rows(server: Server, spoil: Callable[[list[Any]], Any]) -> None:
    server.answer = lambda fields: (200, {"prompt_logprobs": spoil(prompt_logprobs(fields))})
    with pytest.raises(ServerError):
        NaiveScorer(HttpClient(server.url)).score([REQUEST])


def test_scorers_are_found_by_name(server: Server) -> None:
    client = HttpClient(server.url)
    assert isinstance(http_scorer("naive", client), NaiveScorer)
    http_scorer("batched", client).score([REQUEST])
    http_scorer("cached", client).score([REQUEST])
    assert [request["use_cache"] for request in server.requests] == [False, True]
