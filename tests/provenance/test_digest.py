from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepcredit.provenance.digest import PACKAGE_ROOT, code_digest, imported_modules
from stepcredit.provenance.errors import UserError

FILES = {
    "__init__.py": '"""The package."""\n__version__ = "1.0"\n',
    "train/__init__.py": "",
    "train/loop.py": '''"""Training."""
from pack.losses import pg
from . import schedule


def train(steps: int) -> float:
    """Train."""
    from ..engine.core import generate  # only when it runs

    return sum(pg.loss(generate(step)) for step in range(steps))
''',
    "train/schedule.py": "RATE = 0.1\n",
    "losses/__init__.py": "",
    "losses/pg.py": "import pack.numerics\n\n\ndef loss(x: float) -> float:\n    return x\n",
    "numerics.py": "EPSILON = 1e-6\n",
    "engine/__init__.py": "",
    "engine/core.py": 'WORKER = "pack.engine.worker:Worker"\n\n\ndef generate(step):\n    return step\n',
    "engine/worker.py": "class Worker:\n    size = 1\n",
    "report.py": "TITLE = 'A'\n",
    "templates/page.html": "<p>",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "pack"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def digest(package: Path, **arguments: object) -> str:
    return code_digest("train.loop", package_root=package, **arguments)  # type: ignore[arg-type]


def test_closure_holds_lazy_relative_from_and_string_imports_and_the_inits_on_the_way(package: Path):
    assert imported_modules("train.loop", package_root=package) == [
        "",
        "engine",
        "engine.core",
        "engine.worker",
        "losses",
        "losses.pg",
        "numerics",
        "train",
        "train.loop",
        "train.schedule",
    ]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("train/loop.py", "range(steps)", "range(steps + 1)"),
        ("train/loop.py", "steps: int", "steps: float"),
        ("train/schedule.py", "0.1", "0.2"),
        ("losses/pg.py", "return x", "return -x"),
        ("numerics.py", "1e-6", "1e-5"),
        ("engine/core.py", "return step", "return 2 * step"),
        ("engine/worker.py", "size = 1", "size = True"),
        ("losses/__init__.py", "", "import os\n"),
    ],
)
def test_an_edit_of_what_a_module_or_its_imports_define_changes_the_digest(
    package: Path, name: str, old: str, new: str
):
    before = digest(package)
    edit(package / name, old, new)
    assert digest(package) != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("train/loop.py", '"""Train."""', '"""Train a model,\n    slowly."""'),
        ("train/loop.py", '    """Train."""\n', ""),
        ("train/loop.py", "  # only when it runs", ""),
        ("train/loop.py", "def train(steps: int)", "\n\n\n# a comment\ndef train(\n    steps: int,\n)"),
        ("losses/pg.py", "return x", "return (x)"),
        ("train/schedule.py", "RATE = 0.1\n", 'RATE = 0.1\n"""The rate\'s docstring."""\n'),
        ("engine/core.py", '"pack.engine.worker:Worker"', "'pack.engine.worker:Worker'"),
        ("__init__.py", "1.0", "1.1"),
        ("report.py", "'A'", "'B'"),
        ("templates/page.html", "<p>", "<b>"),
    ],
)
def test_comments_docstrings_formatting_version_and_unrelated_modules_change_nothing(
    package: Path, name: str, old: str, new: str
):
    before = digest(package)
    edit(package / name, old, new)
    assert digest(package) == before


def test_data_files_count_by_their_bytes_and_names(package: Path):
    before = digest(package, data=["templates"])
    assert before != digest(package)
    (package / "templates/page.html").rename(package / "templates/pages.html")
    renamed = digest(package, data=["templates"])
    edit(package / "templates/pages.html", "<p>", "<b>")
    assert len({before, renamed, digest(package, data=["templates"])}) == 3


def test_digest_does_not_depend_on_where_the_package_lies_or_on_the_order_of_names(package: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere" / "pack"
    elsewhere.parent.mkdir()
    before = code_digest("train.loop", "report", package_root=package)
    package.rename(elsewhere)
    assert code_digest("report", "train.loop", package_root=elsewhere) == before


def test_unknown_names_are_refused_with_the_nearest_right_one(package: Path):
    with pytest.raises(UserError, match=r'pack has no module "train.lop" \(did you mean "train.loop"\?\)'):
        code_digest("train.lop", package_root=package)
    with pytest.raises(UserError, match='pack has no file or directory "template"'):
        digest(package, data=["template"])
    with pytest.raises(UserError, match="at least one module"):
        code_digest(package_root=package)


def test_broken_sources_are_refused_by_file(package: Path):
    edit(package / "numerics.py", "1e-6", "(")
    with pytest.raises(UserError, match=r"numerics\.py, line 1: is not Python"):
        digest(package)
    edit(package / "losses/pg.py", "pack.numerics", "pack.numbers")
    with pytest.raises(UserError, match=r"pg\.py: imports pack\.numbers, which does not exist"):
        digest(package)


def test_digest_of_this_package_imports_none_of_the_heavy_libraries():
    code = (
        "import sys; from stepcredit.provenance.digest import code_digest;"
        "from stepcredit.provenance import record, manifest, audit;"
        "code_digest('rollouts');"
        "sys.exit(', '.join({'torch', 'pandas', 'pyarrow', 'transformers', 'vllm'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_digests_of_every_module_of_this_package_take_less_than_a_second():
    names = [".".join(path.relative_to(PACKAGE_ROOT).with_suffix("").parts) for path in PACKAGE_ROOT.glob("*/*.py")]
    modules = [name for name in names if not name.endswith("__init__")]
    started = time.process_time()
    code_digest(*modules)
    for name in modules[:20]:
        code_digest(name)
    assert time.process_time() - started < 1.0


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else new + text)
