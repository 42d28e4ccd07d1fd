"""A digest of what a stage's modules define, for Snakemake's `params` and for manifests.

Snakemake does not see edits of an imported package. The digest covers the named modules and everything of the
package that they import, directly or indirectly, by its syntax tree: comments, docstrings, formatting and the
package's `__version__` change nothing; any other edit does. Files are parsed, never imported.
"""

from __future__ import annotations

import ast
import difflib
import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import files_under, sha256

DIGEST_LENGTH = 16
PACKAGE_ROOT = Path(__file__).resolve().parents[1]


def code_digest(*modules: str, package_root: Path | None = None, data: Iterable[str] = ()) -> str:
    """Digest of the definitions behind some modules, sixteen hexadecimal digits.

    Args:
        modules: dotted names inside the package, such as "training.rl".
        package_root: the package's directory; by default that of stepcredit itself.
        data: files or directories of the package that the modules read, such as "reporting/templates".

    Raises:
        UserError: a module or data path does not exist, a module is not Python, or it imports a module of the
            package that does not exist.
    """
    root = PACKAGE_ROOT if package_root is None else package_root
    total = hashlib.sha256()
    for name in sorted(_closure(modules, root)):
        total.update(f"{name} {_read(name, root).fingerprint}\n".encode())
    for path in _data_files(data, root):
        total.update(f"{path.relative_to(root).as_posix()} {sha256(path)}\n".encode())
    return total.hexdigest()[:DIGEST_LENGTH]


def imported_modules(*modules: str, package_root: Path | None = None) -> list[str]:
    """The modules that `code_digest` covers: sorted names inside the package ("" is its own `__init__`)."""
    return sorted(_closure(modules, PACKAGE_ROOT if package_root is None else package_root))


def _closure(modules: Iterable[str], root: Path) -> set[str]:
    names = list(modules)
    if not names:
        raise UserError("code_digest needs the name of at least one module")
    for name in names:
        if _module_file(name, root) is None:
            raise UserError(_unknown_module(name, root))
    reached: set[str] = set()
    while names:
        name = names.pop()
        if name in reached:
            continue
        reached.add(name)
        if name:
            names.append(name.rpartition(".")[0])
        names.extend(_imports_of(name, root))
    return reached


def _unknown_module(name: str, root: Path) -> str:
    paths = (path.relative_to(root).with_suffix("") for path in root.rglob("*.py"))
    known = [".".join(path.parts).removesuffix(".__init__") for path in paths]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f'{root.name} has no module "{name}"' + (f' (did you mean "{near[0]}"?)' if near else "")


def _module_file(name: str, root: Path) -> Path | None:
    """The file of a module or package, by its dotted name inside the package."""
    base = root.joinpath(*name.split(".")) if name else root
    candidates = (base / "__init__.py", base.with_suffix(".py")) if name else (base / "__init__.py",)
    return next((path for path in candidates if path.is_file()), None)


def _imports_of(name: str, root: Path) -> Iterator[str]:
    """Modules of the package that one module imports or names in a string ("package.module:attribute")."""
    source = _read(name, root)
    for wanted in source.imports:
        if _module_file(wanted, root) is None:
            raise UserError(f"{_module_file(name, root)}: imports {root.name}.{wanted}, which does not exist")
        yield wanted
    for wanted in source.perhaps:
        while wanted and _module_file(wanted, root) is None:
            wanted = wanted.rpartition(".")[0]
        if wanted:
            yield wanted


# -- one file -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """What one file defines.

    Attributes:
        fingerprint: hash of its syntax tree.
        imports: modules of the package that it imports; they must exist.
        perhaps: names that may be modules, or attributes of modules, of the package.
    """

    fingerprint: str
    imports: frozenset[str]
    perhaps: frozenset[str]


def _read(name: str, root: Path) -> _Source:
    path = _module_file(name, root)
    assert path is not None
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    try:
        return _parse(path.read_bytes(), root.name, package)
    except SyntaxError as error:
        raise UserError(f"{path}, line {error.lineno}: is not Python ({error.msg})") from None


@functools.cache
def _parse(text: bytes, root_name: str, package: str) -> _Source:
    tree = ast.parse(text)
    imports: set[str] = set()
    perhaps: set[str] = set()
    named = re.compile(rf"{re.escape(root_name)}\.([\w.]+)(?::\w+)?")
    hasher = hashlib.sha256()
    for node, line in _walk(tree):
        hasher.update(line.encode("utf-8", "surrogatepass"))
        if isinstance(node, ast.Import):
            inside = (_inside(alias.name, root_name) for alias in node.names)
            imports.update(found for found in inside if found is not None)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, root_name, package)
            if base is not None:
                imports.add(base)
                perhaps.update(f"{base}.{alias.name}".lstrip(".") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            match = named.fullmatch(node.value)
            if match:
                perhaps.add(match[1])
    return _Source(hasher.hexdigest(), frozenset(imports), frozenset(perhaps))


def _inside(absolute: str, root_name: str) -> str | None:
    """The name inside the package of an absolute module name; None if it is another package's."""
    if absolute == root_name:
        return ""
    return absolute[len(root_name) + 1 :] if absolute.startswith(root_name + ".") else None


def _base(node: ast.ImportFrom, root_name: str, package: str) -> str | None:
    """The module that `from ... import` reads, inside the package; None if it is another package's."""
    if node.level == 0:
        return _inside(node.module or "", root_name)
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - (node.level - 1)]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _walk(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Each node with a line that says what it is, in source order.

    Empty fields are left out, so that the digest does not depend on which fields a Python version has.
    """
    yield node, f"({type(node).__name__}"
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield node, f" {field}="
            yield from _walk(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    if not _defines_nothing(item):
                        yield node, f" {field}+"
                        yield from _walk(item)
                else:
                    yield node, f" {field}+{item!r}"
        elif value is not None and field != "kind":
            yield node, f" {field}={value!r}"
    yield node, ")"


def _defines_nothing(node: ast.AST) -> bool:
    """A string that stands alone (a docstring), or the package's version label."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == "__version__" for target in node.targets)
    return False


def _data_files(data: Iterable[str], root: Path) -> list[Path]:
    found: set[Path] = set()
    for name in data:
        path = root / name
        if not path.exists():
            raise UserError(f'{root.name} has no file or directory "{name}"')
        found.update(files_under(path) if path.is_dir() else [path])
    return sorted(found)
