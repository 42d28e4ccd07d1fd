"""A finished run as one RO-Crate: a zip whose metadata say what was run, from what, and what came of it.

Profile: Workflow Run RO-Crate 0.5 (https://w3id.org/ro/wfrun/workflow/0.5). The workflow's files are at the top,
the results below `results/`, their manifests included, so that an unpacked crate can be audited.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from stepcredit.provenance.audit import IGNORED
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_path, sha256
from stepcredit.provenance.ledger import read_ledger, walk
from stepcredit.provenance.manifest import CONFIG_NAME, Manifest

Entity: TypeAlias = dict[str, Any]

METADATA = "ro-crate-metadata.json"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
LICENSE = "https://spdx.org/licenses/MIT"
FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".safetensors": "application/octet-stream",
    ".svg": "image/svg+xml",
    ".yaml": "application/yaml",
}
_BEGINNING = (1980, 1, 1, 0, 0, 0)
"""The date of every file in the zip: the same run gives the same bytes."""


def write_crate(results: Path, workflow: Path, out: Path, version: str) -> int:
    """Write the crate of a results directory; returns the number of files in it.

    Args:
        results: a results directory whose audit found nothing.
        workflow: the directory of the Snakefile that made it.
        out: the zip.
        version: of the workflow.

    Raises:
        UserError: there is no report yet, or no Snakefile.
    """
    manifests = read_ledger(results, walk(results, IGNORED), "").manifests
    if not any(manifest.stage == "report" for manifest in manifests.values()):
        raise UserError(f"{results}: holds no finished run; snakemake makes {results / 'report.html'}")
    if not (workflow / "Snakefile").is_file():
        raise UserError(f"{workflow}: has no Snakefile; name the directory of the workflow with --workflow")
    sources = [workflow / "Snakefile", *sorted((workflow / "rules").glob("*.smk")), *_locks(workflow)]
    files = {file.relative_to(workflow).as_posix(): file for file in sources}
    made = sorted({*manifests, *(path for manifest in manifests.values() for path in manifest.outputs)})
    files |= {f"results/{path}": results / path for path in (CONFIG_NAME, *made)}
    graph = _graph(files, len(sources), list(manifests.values()), version)
    metadata = {"@context": _context(), "@graph": graph}
    with atomic_path(out) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(METADATA), json.dumps(metadata, indent=1, ensure_ascii=False) + "\n")
        for name, path in files.items():
            with archive.open(_entry(name), "w", force_zip64=True) as packed, path.open("rb") as stream:
                while block := stream.read(2**20):
                    packed.write(block)
    return len(files)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _BEGINNING)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _locks(workflow: Path) -> list[Path]:
    return sorted(file for file in (workflow / "envs").glob("*") if file.is_file())


def _context() -> list[Any]:
    """RO-Crate's terms, and that of `sha256`, which version 1.1 lacks."""
    return ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}]


def _graph(files: Mapping[str, Path], sources: int, manifests: Sequence[Manifest], version: str) -> list[Entity]:
    began, ended = _time_of(manifests)
    names = list(files)
    results = [name for name in names[sources:] if name != f"results/{CONFIG_NAME}"]
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": "A run of stepcredit",
        "description": "Paragraph-level credit, score centering and parity: every file of one run of the workflow,"
        " with manifests that tell what each was made from, by which code and from which seed.",
        "datePublished": ended,
        "license": _reference(LICENSE),
        "conformsTo": [_reference(profile) for profile in PROFILES],
        "hasPart": [_reference(name) for name in names],
        "mainEntity": _reference("Snakefile"),
        "mentions": _reference("#run"),
        "author": _reference("#authors"),
    }
    run: Entity = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": "The run",
        "description": f"{len(manifests)} jobs, from puzzles to the report",
        "instrument": _reference("Snakefile"),
        "object": _reference(f"results/{CONFIG_NAME}"),
        "result": [_reference(name) for name in results],
        "startTime": began,
        "endTime": ended,
        "actionStatus": "http://schema.org/CompletedActionStatus",
    }
    return [_descriptor(), root, run, *_context_entities(), *_file_entities(files, names[1:sources], version)]


def _descriptor() -> Entity:
    return {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": _reference("./"),
        "conformsTo": [
            _reference("https://w3id.org/ro/crate/1.1"),
            _reference("https://w3id.org/workflowhub/workflow-ro-crate/1.0"),
        ],
    }


def _context_entities() -> list[Entity]:
    """What the others refer to: profiles, the licence, the language, the configuration as a parameter."""
    snakemake = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
    return [
        *(
            {"@id": profile, "@type": "CreativeWork", "name": name, "version": version}
            for profile, (name, version) in PROFILES.items()
        ),
        {
            "@id": LICENSE,
            "@type": "CreativeWork",
            "name": "MIT License",
            "description": "The licence of the workflow and of what it generates",
            "url": LICENSE,
        },
        {"@id": "#authors", "@type": "Organization", "name": "The stepcredit authors"},
        {
            "@id": snakemake,
            "@type": "ComputerLanguage",
            "name": "Snakemake",
            "identifier": _reference("https://snakemake.readthedocs.io"),
            "url": _reference("https://snakemake.readthedocs.io"),
        },
        {
            "@id": "#configuration",
            "@type": "FormalParameter",
            "additionalType": "File",
            "name": "configuration",
            "description": "Every setting, merged and validated",
            "workExample": _reference(f"results/{CONFIG_NAME}"),
        },
    ]


def _file_entities(files: Mapping[str, Path], parts: Iterable[str], version: str) -> Iterable[Entity]:
    for name, path in files.items():
        entity: Entity = {
            "@id": name,
            "@type": "File",
            "name": name,
            "contentSize": str(path.stat().st_size),
            "sha256": sha256(path),
            "encodingFormat": FORMATS.get(path.suffix, "text/plain"),
        }
        if name == "Snakefile":
            entity |= {
                "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
                "name": "stepcredit",
                "version": version,
                "programmingLanguage": _reference("https://w3id.org/workflowhub/workflow-ro-crate#snakemake"),
                "license": _reference(LICENSE),
                "input": _reference("#configuration"),
                "conformsTo": _reference("https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"),
                "hasPart": [_reference(part) for part in parts],
            }
        if name == f"results/{CONFIG_NAME}":
            entity["exampleOfWork"] = _reference("#configuration")
        yield entity


def _time_of(manifests: Sequence[Manifest]) -> tuple[str, str]:
    """When the first job began and the last one ended, ISO 8601."""
    starts = [datetime.fromisoformat(manifest.volatile.started) for manifest in manifests]
    ends = [
        start + timedelta(seconds=manifest.volatile.seconds) for start, manifest in zip(starts, manifests, strict=True)
    ]
    began, ended = (moment.astimezone(UTC).isoformat(timespec="seconds") for moment in (min(starts), max(ends)))
    return began, ended


def _reference(identifier: str) -> Entity:
    return {"@id": identifier}
