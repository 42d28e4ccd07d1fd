"""Entry point of the group `vllm.endpoint_plugins`: the HTTP side of target-span scoring.

All paths start with /inference, which vLLM's `--api-key` guards; `check_guarded` checks that it does.
"""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse

from stepcredit.scoring.vllm_plugin import PLUGIN_NAME, RESET_PATH, SCORE_PATH, UPDATE_PATH
from stepcredit.scoring.vllm_plugin.batch import BadRequestError, read_batch
from stepcredit.scoring.vllm_plugin.service import IncompleteScoreError, SpanService, UpdateError
from stepcredit.scoring.vllm_plugin.settings import read_settings
from stepcredit.scoring.vllm_plugin.versions import client_error, guarded_prefixes, require_supported

_CLIENT_CLOSED_REQUEST = 499


class EndpointPlugin:
    """What vLLM asks of an endpoint plugin."""

    name = PLUGIN_NAME
    required_tasks = ("generate",)

    def attach_router(self, app: FastAPI) -> None:
        """Add the routes.

        Raises:
            UnsupportedVLLMError: this vLLM is not supported.
            RuntimeError: vLLM would not ask for its API key on our paths.
        """
        require_supported()
        check_guarded()
        app.include_router(_router())

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:
        """Make ready to score.

        Raises:
            ValueError: the configuration of vLLM or of the plugin does not allow right scores.
            RuntimeError: the engine core lacks the plugin.
        """
        settings = read_settings()
        if settings.allow_updates and (getattr(args, "api_server_count", None) or 1) > 1:
            raise ValueError("STEPCREDIT_ALLOW_UPDATES=1 needs one API server: with several, scorings could straddle")
        service = SpanService(engine_client, settings)
        await service.check_engine()
        state.stepcredit_service = service
        state.stepcredit_settings = settings


def make_plugin() -> EndpointPlugin:
    """The factory that vLLM calls."""
    return EndpointPlugin()


def check_guarded() -> None:
    """Raises:
    RuntimeError: vLLM's API key guards other paths than ours.
    """
    guarded = guarded_prefixes()
    if not all(path.startswith(guarded) for path in (SCORE_PATH, UPDATE_PATH, RESET_PATH)):
        raise RuntimeError(f"vLLM's --api-key guards {guarded} only, and the scoring endpoint is outside of it")


def _router() -> APIRouter:
    router = APIRouter()
    router.add_api_route(SCORE_PATH, describe, methods=["GET"])
    router.add_api_route(SCORE_PATH, prompt_logprobs, methods=["POST"])
    router.add_api_route(UPDATE_PATH, update_weights, methods=["POST"])
    router.add_api_route(RESET_PATH, reset_prefix_cache, methods=["POST"])
    return router


async def describe(request: Request) -> JSONResponse:
    """What this server scores with, and its limits."""
    service: SpanService = request.app.state.stepcredit_service
    settings = request.app.state.stepcredit_settings
    return JSONResponse(
        {
            "block_size": service.block_size,
            "max_length": service.limits.max_length,
            "vocabulary": service.limits.vocabulary,
            "max_sequences": settings.max_sequences,
            "max_body_bytes": settings.max_body_bytes,
            "updates": service.updates,
        }
    )


async def prompt_logprobs(request: Request) -> JSONResponse:
    """Score a batch (`batch.py` has the format): in its order, with what it took.

    {"logprobs": [...], "cached_tokens": [...], "computed_tokens": number}
    """
    service: SpanService = request.app.state.stepcredit_service
    try:
        body = await _body(request, request.app.state.stepcredit_settings.max_body_bytes)
        batch = await asyncio.to_thread(read_batch, body, service.limits)
        scores = await _unless_disconnected(request, service.score(batch))
    except Exception as error:
        return _failure(error)
    if scores is None:
        return _error(_CLIENT_CLOSED_REQUEST, "the client is gone")
    return JSONResponse(
        {
            "logprobs": [score.logprob for score in scores],
            "cached_tokens": [score.cached_tokens for score in scores],
            "computed_tokens": sum(score.computed_tokens for score in scores),
        }
    )


async def update_weights(request: Request) -> JSONResponse:
    """Load the checkpoint {"directory": path}, a path on the server: {"updates": how many there were}."""
    service: SpanService = request.app.state.stepcredit_service
    try:
        _require_updates(request)
        directory = _directory(await _body(request, 2**16))
        await service.update_weights(directory)
    except Exception as error:
        return _failure(error)
    return JSONResponse({"updates": service.updates})


async def reset_prefix_cache(request: Request) -> JSONResponse:
    """Forget what is cached."""
    try:
        _require_updates(request)
        await request.app.state.stepcredit_service.reset_cache()
    except Exception as error:
        return _failure(error)
    return JSONResponse({})


async def _body(request: Request, limit: int) -> bytes:
    """The body, read no further than `limit`."""
    parts = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise BadRequestError(f"the body is larger than {limit} bytes", 413)
        parts.append(part)
    return b"".join(parts)


async def _unless_disconnected(request: Request, work: Any) -> Any:
    """The result of `work`; None where the client goes away first, which cancels it and frees the engine."""
    scoring = asyncio.ensure_future(work)
    listening = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait([scoring, listening], return_when=asyncio.FIRST_COMPLETED)
        return scoring.result() if scoring.done() else None
    finally:
        scoring.cancel()
        listening.cancel()
        await asyncio.gather(scoring, listening, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _directory(body: bytes) -> Path:
    try:
        directory = Path(json.loads(body)["directory"])
    except (ValueError, TypeError, KeyError):
        raise BadRequestError('the body must be {"directory": path}') from None
    if not (directory / "config.json").is_file():
        raise BadRequestError(f"{directory} is no checkpoint: it has no config.json")
    if not any(directory.glob("*.safetensors")):
        raise BadRequestError(f"{directory} is no checkpoint: it has no .safetensors file")
    return directory


def _require_updates(request: Request) -> None:
    if not request.app.state.stepcredit_settings.allow_updates:
        raise BadRequestError("this server's weights are fixed: start it with STEPCREDIT_ALLOW_UPDATES=1", 403)


def _failure(error: Exception) -> JSONResponse:
    from vllm.v1.engine.exceptions import EngineDeadError

    match error:
        case BadRequestError():
            return _error(error.status, str(error))
        case _ if isinstance(error, client_error()):
            return _error(400, str(error))
        case EngineDeadError() | UpdateError():
            return _error(503, str(error))
        case IncompleteScoreError():
            return _error(500, str(error))
    raise error


def _error(status: int, message: str) -> JSONResponse:
    """An error as vLLM's other endpoints say it."""
    return JSONResponse({"error": {"message": message, "code": status}}, status_code=status)
