"""JSON over HTTP to a scorer server: persistent connections, careful retries, clear errors."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class ServerError(RuntimeError):
    """A server refused a request, answered oddly, or is gone; `status` is its HTTP status, if it answered."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Reply(NamedTuple):
    """A JSON object and the bytes that it came in."""

    fields: dict[str, Any]
    size: int


class HttpClient:
    """Requests to one server; may be used from several threads."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout: float = 900.0,
        attempts: int = 5,
        explain: Callable[[], str | None] | None = None,
    ) -> None:
        """
        Args:
            url: `http://host:port`, without a path.
            api_key: the server's `--api-key`.
            timeout: seconds without a byte after which a request is given up.
            attempts: how often a request is sent where the connection fails. Scoring twice does no harm.
            explain: says why the server is gone, or None while it lives; asked where a connection fails.

        Raises:
            ValueError: `url` is no such URL.
        """
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/"):
            raise ValueError(f"{url!r} is not of the form http://host:port")
        self.url = url.rstrip("/")
        self._host, self._port = parts.hostname, parts.port or 80
        self._headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {api_key}"} if api_key else {}
        )
        self._timeout, self._attempts, self._explain = timeout, attempts, explain
        self._local = threading.local()

    def get(self, path: str) -> Reply:
        """See `post`."""
        return self._request("GET", path, None)

    def get_text(self, path: str) -> str:
        """An answer that is no JSON; see `post`."""
        status, raw = self._attempt("GET", path, None)
        if status != 200:
            raise ServerError(f"GET {self.url}{path}: {status} {_message(None, raw)}", status)
        return raw.decode(errors="replace")

    def post(self, path: str, fields: dict[str, Any]) -> Reply:
        """The server's answer to a JSON object.

        Raises:
            ServerError: the answer is an error or no JSON object, or the connection failed too often.
        """
        return self._request("POST", path, json.dumps(fields, separators=(",", ":"), allow_nan=False).encode())

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    def _request(self, method: str, path: str, body: bytes | None) -> Reply:
        status, raw = self._attempt(method, path, body)
        return _read(f"{method} {self.url}{path}", status, raw)

    def _attempt(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Status and body of the answer, after as many attempts as it takes and is allowed."""
        for attempt in range(1, self._attempts + 1):
            try:
                return self._send(method, path, body)
            except TimeoutError as error:
                self.close()
                raise ServerError(f"{method} {self.url}{path}: no answer in {self._timeout:g} s") from error
            except (OSError, http.client.HTTPException) as error:  # refused, reset, or cut off in mid-answer
                self.close()
                gone = self._explain() if self._explain else None
                if gone or attempt == self._attempts:
                    reason = gone or f"the connection failed {attempt} times, at last with: {error!r}"
                    raise ServerError(f"{method} {self.url}{path}: {reason}") from error
                time.sleep(0.1 * 2**attempt)
        raise AssertionError("unreachable")

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
            self._local.connection = connection
        with contextlib.suppress(BrokenPipeError):  # a server that refuses a body early may have answered already
            connection.request(method, path, body, self._headers)
        response = connection.getresponse()
        return response.status, response.read()


def _read(what: str, status: int, raw: bytes) -> Reply:
    try:
        fields = json.loads(raw)
    except ValueError:
        fields = None
    if status != 200:
        raise ServerError(f"{what}: {status} {_message(fields, raw)}", status)
    if not isinstance(fields, dict):
        raise ServerError(f"{what}: the answer is no JSON object: {raw[:200]!r}")
    return Reply(fields, len(raw))


def _message(fields: Any, raw: bytes) -> str:
    match fields:
        case {"error": {"message": str(message)}} | {"error": str(message)} | {"detail": str(message)}:
            return message
    return raw[:200].decode(errors="replace")
