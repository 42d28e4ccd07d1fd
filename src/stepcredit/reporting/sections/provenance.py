"""Provenance: every file, its hash, its seed, and the command that remakes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from stepcredit.reporting.blocks import Absent, Block, Cell, Code, Details, Facts, Section, Table
from stepcredit.reporting.numbers import count, duration, joined
from stepcredit.reporting.run import Run

SHOWN = 12
"""Characters of a hash that are shown; the manifest holds them all."""
QUESTION = "Where does each number come from, and how is it made again?"


def section(run: Run) -> Section:
    config = yaml.safe_dump(run.config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    folded: Block = Details("Configuration, every key", [Code(config)], bulk=True)
    manifests = [content for _, content in run.manifests]
    if not manifests:
        absent = Absent("No stage of this run left a manifest.", f"stepcredit audit {run.config.outdir}")
        return Section("provenance", "Provenance and audit", QUESTION, "", [absent, folded])
    outputs = sum(len(_mapping(content, "outputs")) for content in manifests)
    answer = f"{count(len(manifests))} stages left a manifest, with the hashes of {count(outputs)} files."
    blocks: list[Block] = [
        Facts(_facts(run, manifests)),
        Code(f"stepcredit audit {run.config.outdir}\nsnakemake --cores all {run.config.outdir}/report.html"),
        Details("Stages", [_stages(run)], bulk=True),
        Details("Files and hashes", [_files(run)], bulk=True),
        Details("Package versions", [_versions(manifests)]),
        folded,
    ]
    return Section("provenance", "Provenance and audit", QUESTION, answer, blocks)


def _facts(run: Run, manifests: list[dict[str, Any]]) -> list[tuple[str, str]]:
    volatile = [_mapping(content, "volatile") for content in manifests]
    commits = _distinct([_commit(_mapping(part, "commit")) for part in volatile])
    machines = _distinct([_machine(_mapping(part, "machine")) for part in volatile])
    seconds = sum(float(part.get("seconds") or 0) for part in volatile)
    return [
        ("Commit", joined(commits) or "not recorded"),
        ("Machine", joined(machines) or "not recorded"),
        ("Seeds", ", ".join(map(str, run.config.seeds))),
        ("Stages together", duration(seconds)),
    ]


def _stages(run: Run) -> Table:
    rows = []
    for path, content in run.manifests:
        seconds = _mapping(content, "volatile").get("seconds")
        rows.append(
            [
                Cell(str(content.get("stage", path))),
                Cell(_text(content.get("seed"))),
                Cell(_text(_mapping(content, "code").get("digest"))[:SHOWN]),
                Cell(str(len(_mapping(content, "outputs"))), numeric=True),
                Cell.value(float(seconds) if seconds is not None else None, "seconds"),
            ]
        )
    return Table("One row a manifest.", ["stage", "seed", "code digest", "files", "seconds"], rows)


def _files(run: Run) -> Table:
    rows = [
        [Cell(path), Cell(str(digest)[:SHOWN])]
        for _, content in run.manifests
        for path, digest in sorted(_mapping(content, "outputs").items())
    ]
    remake = f"snakemake --cores all --force {run.config.outdir}/FILE"
    caption = "Each file under the results, and the start of its sha256."
    return Table(caption, ["file", "sha256"], rows, command=remake)


def _versions(manifests: list[dict[str, Any]]) -> Table:
    found: dict[str, list[str]] = {}
    for content in manifests:
        for package, version in _mapping(content, "versions").items():
            found.setdefault(str(package), []).append(str(version))
    rows = [[Cell(package), Cell(joined(_distinct(found[package])))] for package in sorted(found)]
    return Table("Versions that the stages ran with.", ["package", "version"], rows)


def _mapping(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A part of a manifest that should be a mapping; empty where it is absent or something else."""
    part = content.get(key)
    return part if isinstance(part, dict) else {}


def _commit(commit: dict[str, Any]) -> str:
    changed = " with changes" if commit.get("dirty") else ""
    return f"{str(commit['head'])[:SHOWN]}{changed}" if commit.get("head") else ""


def _machine(machine: dict[str, Any]) -> str:
    parts = [machine.get("cpu"), f"{machine['cores']} cores" if machine.get("cores") else "", machine.get("gpu")]
    return ", ".join(str(part) for part in parts if part)


def _distinct(values: list[Any]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value))


def _text(value: Any) -> str:
    return "–" if value is None else str(value)
