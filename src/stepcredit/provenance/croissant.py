"""Croissant metadata of a run's data: its files with their hashes, and what each column means.

Format: Croissant 1.0 (http://mlcommons.org/croissant/1.0), JSON-LD beside the `data` directory's files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import sha256
from stepcredit.provenance.manifest import read_manifest
from stepcredit.provenance.schemas import SCHEMAS

Entity: TypeAlias = dict[str, Any]

FILES = {
    "clean": ("clean.parquet", "demonstrations", "Every demonstration that survived cleaning"),
    "demonstrations": ("splits/demonstrations.parquet", "demonstrations", "The demonstrations of SFT"),
    "rl": ("splits/rl.parquet", "puzzles", "The puzzles of RL"),
    "validation": ("splits/validation.parquet", "puzzles", "The puzzles that choose the learning rate"),
    "heldout": ("splits/heldout.parquet", "puzzles", "The puzzles of the evaluation; no other split holds one of them"),
}
"""Record set -> (file below `data`, its schema, what its rows are)."""
COLUMNS = {
    "nums": "The numbers of the puzzle",
    "target": "The number to be made of them with + - * / and parentheses, each used at most once",
    "prompt": "What the model is given",
    "completion": "What it is to learn: reasoning, then a solution that the verifier accepts",
}
_TYPES = {"int64": "sc:Integer", "list<int64>": "sc:Integer", "string": "sc:Text"}
_LICENSE = "https://spdx.org/licenses/MIT"
_CONTEXT: Entity = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "equivalentProperty": "cr:equivalentProperty",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "samplingRate": "cr:samplingRate",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def describe_data(data: Path, version: str) -> Entity:
    """The metadata of the cleaned data of a run, addresses relative to `data`.

    A licence is given where the rows were generated; those from elsewhere keep theirs, which we do not know.

    Args:
        data: the directory `data` of a results directory.
        version: of the workflow that made it.

    Raises:
        UserError: a file is absent.
    """
    absent = [str(data / file) for file, _, _ in FILES.values() if not (data / file).is_file()]
    if absent:
        raise UserError(f"{', '.join(absent)}: no such file; the workflow's data stages make it")
    manifest = read_manifest(data / "splits/manifest.json")
    generated = manifest.settings.get("source") == "synthetic"
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "countdown-demonstrations",
        "description": "Countdown puzzles and cleaned, verified demonstrations of how to solve them.",
        **({"license": _LICENSE} if generated else {}),
        "citeAs": f"The stepcredit authors: stepcredit {version}, a workflow",
        "datePublished": manifest.volatile.started[:10],
        "version": version,
        "distribution": [_file(data, name) for name in FILES],
        "recordSet": [_records(name) for name in FILES],
    }


def _file(data: Path, name: str) -> Entity:
    path = FILES[name][0]
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "contentSize": f"{(data / path).stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": sha256(data / path),
    }


def _records(name: str) -> Entity:
    path, schema, description = FILES[name]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": description,
        "field": [_field(name, path, column, arrow) for column, arrow in SCHEMAS[schema].items()],
    }


def _field(name: str, path: str, column: str, arrow: str) -> Entity:
    return {
        "@type": "cr:Field",
        "@id": f"{name}/{column}",
        "name": column,
        "description": COLUMNS[column],
        "dataType": _TYPES[arrow],
        **({"repeated": True} if arrow.startswith("list") else {}),
        "source": {"fileObject": {"@id": path}, "extract": {"column": column}},
    }
