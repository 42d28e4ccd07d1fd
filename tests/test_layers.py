import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "stepcredit"
FLOORS = {
    "countdown": 1,
    "config": 1,
    "jobs": 1,
    "config_files": 1,
    "settings": 1,
    "provenance": 1,
    "losses": 1,
    "seeds": 1,
    "devices": 1,
    "memory": 1,
    "vllm_process": 1,
    "rollouts": 2,
    "tables": 2,
    "data": 2,
    "modeling": 2,
    "scoring": 3,
    "sampling": 4,
    "credit": 5,
    "training": 6,
    "evaluation": 6,
    "studies": 7,
    "reporting": 7,
    "cli": 8,
}
GROUND = {"config", "config_files", "jobs", "settings", "seeds", "provenance"}
"""What any floor may use, the first one included: they know nothing of the others."""


def imports(file: Path) -> set[str]:
    """Top-level parts of the package that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("stepcredit.")}
    return found


def test_every_part_has_a_floor():
    parts = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert parts - {"__init__"} == FLOORS.keys()


def test_modules_import_downwards_and_sideways_only_inside_their_package():
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        part = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for other in imports(file) - {part, "__version__"}:
            allowed = FLOORS[other] < FLOORS[part] or other in GROUND
            if not allowed:
                wrong.append(
                    f"{file.relative_to(PACKAGE)} (floor {FLOORS[part]}) imports {other} (floor {FLOORS[other]})"
                )
    assert wrong == []


def test_what_the_snakefile_imports_is_light():
    """`snakemake -n` must stay fast: no torch, vLLM, transformers or matplotlib behind the rules."""
    import subprocess
    import sys

    program = (
        "import sys, stepcredit.config_files, stepcredit.provenance.stages, stepcredit.reporting.names,"
        " stepcredit.reporting.settings;"
        "print([name for name in ('torch', 'vllm', 'transformers', 'matplotlib', 'datasets') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
