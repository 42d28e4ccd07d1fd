"""What Kubernetes does for Snakemake, on loopback: it takes secrets and jobs, and runs each job in an empty directory.

No cluster: nothing is scheduled, isolated or pulled, and what a real API server would refuse goes through. A job sees
no file of the one that submitted it, though, so what it reads it has to have fetched from the bucket.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PLUGINS = ("snakemake_executor_plugin_kubernetes", "snakemake_storage_plugin_s3")
STORE = "moto_server"
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "{url}"}}}}]
users: [{{name: me, user: {{}}}}]
contexts: [{{name: here, context: {{cluster: here, user: me}}}}]
"""


def missing() -> str:
    """Why there can be no bucket here, or no cluster; empty if there can."""
    absent = [name for name in PLUGINS if find_spec(name) is None]
    if absent:
        return f"needs {', '.join(absent).replace('_', '-')}"
    return "" if shutil.which(STORE) else f"needs {STORE}: pip install 'moto[server]' in an environment of its own"


@contextmanager
def bucket(directory: Path, name: str) -> Iterator[dict[str, str]]:
    """An S3 server with an empty bucket; yields the environment in which the storage plugin finds it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"ENDPOINT_URL": f"http://127.0.0.1:{port}", "ACCESS_KEY": "key", "SECRET_KEY": "secret"}
    with (directory / "bucket.log").open("wb") as log:
        command = [STORE, "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        _create_bucket(settings, name)
        yield os.environ | {f"SNAKEMAKE_STORAGE_S3_{key}": value for key, value in settings.items()}
    finally:
        server.terminate()
        server.wait(20)


def objects(environment: dict[str, str], name: str) -> dict[str, int]:
    """Keys in a bucket, with their sizes."""
    found = _resource({key: environment[f"SNAKEMAKE_STORAGE_S3_{key}"] for key in _KEYS}).Bucket(name).objects.all()
    return {found.key: found.size for found in found}


_KEYS = ("ENDPOINT_URL", "ACCESS_KEY", "SECRET_KEY")


def _resource(settings: dict[str, str]) -> Any:
    import boto3

    endpoint, access, secret = (settings[key] for key in _KEYS)
    keys = {"aws_access_key_id": access, "aws_secret_access_key": secret}
    return boto3.resource("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)


def _create_bucket(settings: dict[str, str], name: str) -> None:
    deadline = time.monotonic() + 300
    while True:
        try:
            _resource(settings).create_bucket(Bucket=name)
            return
        except Exception:  # it listens a few seconds after it was started
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


class Cluster:
    """Jobs that were submitted, in order, and what became of them.

    Attributes:
        jobs: the manifests as they were sent, by name.
        codes: exit status of each job that ended.
        logs: what each job printed.
    """

    def __init__(self, directory: Path) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, int] = {}
        self.logs: dict[str, str] = {}
        self._secrets: dict[str, dict[str, str]] = {}
        self._directory = directory
        self._image = directory / "image"
        self._make_image()

    def _make_image(self) -> None:
        """The programs that a job finds; `pip` has nothing to do, because this Python has the storage plugin."""
        self._image.mkdir(parents=True)
        for name, text in {"pip": "", "python": f'exec "{sys.executable}" "$@"\n'}.items():
            (self._image / name).write_text(f"#!/bin/sh\n{text}")
            (self._image / name).chmod(0o755)

    def add_secret(self, body: dict[str, Any]) -> None:
        self._secrets[body["metadata"]["name"]] = body["data"]

    def start(self, body: dict[str, Any]) -> None:
        name = body["metadata"]["name"]
        self.jobs[name] = body
        threading.Thread(target=self._run, args=(name, body), daemon=True).start()

    def _run(self, name: str, body: dict[str, Any]) -> None:
        (container,) = body["spec"]["template"]["spec"]["containers"]
        environment = {"PATH": f"{self._image}:/usr/bin:/bin", "HOME": str(self._directory)}
        environment |= {key: os.environ[key] for key in ("PYTHONPATH",) if key in os.environ}
        for variable in container["env"]:
            key = variable["valueFrom"]["secretKeyRef"]
            environment[variable["name"]] = base64.b64decode(self._secrets[key["name"]][key["key"]]).decode()
        workdir = self._directory / name
        workdir.mkdir()
        command = [*container["command"], *container["args"]]
        done = subprocess.run(command, cwd=workdir, env=environment, capture_output=True, text=True, check=False)
        shutil.rmtree(workdir)
        self.logs[name] = done.stdout + done.stderr
        self.codes[name] = done.returncode

    def job(self, name: str) -> dict[str, Any]:
        code = self.codes.get(name)
        status = {} if code is None else {"succeeded": 1} if code == 0 else {"failed": 1}
        return self.jobs[name] | {"status": status}

    def pods(self, name: str) -> list[dict[str, Any]]:
        if name not in self.codes:
            return []
        ended = {"terminated": {"exitCode": self.codes[name]}}
        container = {"name": "snakemake", "state": ended, "image": "", "imageID": "", "ready": False, "restartCount": 0}
        return [{"metadata": {"name": f"{name}-pod"}, "status": {"containerStatuses": [container]}}]


@contextmanager
def cluster(directory: Path) -> Iterator[tuple[Cluster, Path]]:
    """A running cluster, and the configuration file for its clients."""
    state = Cluster(directory)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None: ...

        def _answer(self, content: Any) -> None:
            text = content if isinstance(content, str) else json.dumps(content)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.start(body) if self.path.endswith("/jobs") else state.add_secret(body)
            self._answer(body)

        def do_GET(self) -> None:
            if found := re.search(r"/jobs/([^/]+)/status", self.path):
                self._answer(state.job(found[1]))
            elif found := re.search(r"/pods\?labelSelector=job-name%3D([\w-]+)", self.path):
                self._answer({"items": state.pods(found[1])})
            elif found := re.search(r"/pods/([\w-]+)-pod/log", self.path):
                self._answer(state.logs[found[1]])
            else:
                self.send_error(404)

        def do_DELETE(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer({"kind": "Status", "status": "Success"})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    configuration = directory / "kubeconfig"
    configuration.write_text(KUBECONFIG.format(url=f"http://127.0.0.1:{server.server_port}"))
    try:
        yield state, configuration
    finally:
        server.shutdown()
        server.server_close()
