"""The documentation: links lead somewhere, and what it names and tells to run exists."""

import ast
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import typer.main
import yaml

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), ROOT / "config/README.md", ROOT / "results/README.md", *(ROOT / "docs").rglob("*.md")]
)
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|path/to|\{|\*|\.\.\.")
FOLDERS = ("src", "docs", "config", "rules", "envs", "profiles", "report", "tests", "workflow", "benchmarks", ".ci")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    return FENCE.sub("", text(page))


def commands() -> list[tuple[str, str]]:
    """(page, command) of every shell command in a block or in line, comments left out."""
    found = []
    for page in PAGES:
        blocks = [body for language, body in FENCE.findall(text(page)) if language in ("bash", "sh", "")]
        lines = [line.strip() for body in blocks for line in body.replace("\\\n", " ").splitlines()]
        lines += CODE.findall(prose(page))
        found += [(name(page), line) for line in lines if re.match(r"(stepcredit|snakemake|make|cmp) ", f"{line} ")]
    return found


def words(command: str) -> list[str]:
    return shlex.split(command, comments=True)


def of(program: str) -> list[tuple[str, str]]:
    return [(page, command) for page, command in commands() if words(command)[:1] == [program]]


def slugs(page: Path) -> set[str]:
    """Anchors of the headings of a page, as the common Markdown hosts make them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page):
    broken = []
    for link in LINK.findall(prose(page)):
        if re.match(r"\w+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in slugs(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_path_of_the_repository_exists(page):
    paths = [code.split()[0] for code in CODE.findall(prose(page)) if code.split("/")[0] in FOLDERS and "/" in code]
    paths = [re.sub(r"(:|::)\S*$", "", path) for path in paths if not PLACEHOLDER.search(path)]
    absent = [path for path in paths if not (ROOT / path).exists() and path not in written_by(page)]
    assert absent == []


def written_by(page: Path) -> set[str]:
    """Files that a how-to tells its reader to write."""
    return set(re.findall(r"Write `([^`]+)`", text(page)))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_dotted_name_of_the_package_exists(page):
    names = {code.partition("(")[0] for code in CODE.findall(prose(page)) if re.match(r"stepcredit\.\w", code)}
    absent = [dotted for dotted in names if not PLACEHOLDER.search(dotted) and not defined(dotted)]
    assert absent == []


def defined(dotted: str) -> bool:
    """Whether a module, or something that a module defines or imports, has this name; nothing is imported."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        base = ROOT.joinpath("src", *parts[:end])
        file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        if file.is_file():
            return end == len(parts) or parts[end] in names_in(file)
    return False


def names_in(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize(("page", "command"), of("stepcredit"), ids=lambda value: str(value)[:60])
def test_every_subcommand_and_option_of_stepcredit_exists(page, command):
    from stepcredit.cli import app

    group = typer.main.get_command(app)
    known = group.commands
    given = words(command)[1:]
    if given[:1] and not given[0].startswith("-"):
        assert given[0] in known, f"{page}: {command}"
        group = known[given[0]]
    options = {option for parameter in group.params for option in (*parameter.opts, *parameter.secondary_opts)}
    asked = {word.partition("=")[0] for word in given if word.startswith("--")}
    assert asked <= options | {"--help", "--install-completion"}, f"{page}: {command}"


@pytest.mark.parametrize(("page", "command"), of("make"), ids=lambda value: str(value)[:60])
def test_every_target_of_make_exists(page, command):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = [word for word in words(command)[1:] if "=" not in word]
    assert set(asked) <= targets, f"{page}: {command}"


SNAKEMAKE = sorted(
    {shlex.join(words(command)) for _, command in of("snakemake") if not re.search(r"\b[A-Z]{3,}\b|\.\.\.", command)}
    - {"snakemake"}
)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory) -> Path:
    """A working directory with the configuration, and a `mine.yaml` as the how-to has it."""
    import shutil

    directory = tmp_path_factory.mktemp("reader")
    shutil.copytree(ROOT / "config", directory / "config")
    blocks = [body for language, body in FENCE.findall(text(ROOT / "docs/howto.md")) if language == "yaml"]
    for file in (ROOT / "config").glob("*.yaml"):
        pretrained = (yaml.safe_load(file.read_text()).get("model") or {}).get("pretrained") or ""
        if pretrained.startswith("models/"):  # what the page tells its reader to download
            (directory / pretrained).mkdir(parents=True, exist_ok=True)
            (directory / pretrained / "config.json").touch()
    (directory / "mine.yaml").write_text(next(body for body in blocks if "arms:" in body))
    return directory


@pytest.mark.workflow
@pytest.mark.parametrize("command", SNAKEMAKE, ids=lambda value: value[:70])
def test_every_command_of_snakemake_plans(workplace, command):
    given = words(command)[1:]
    where = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(workplace), "--dry-run", "--quiet", "rules"]
    if not {"--cores", "--jobs"} & set(given):
        where += ["--cores", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *where, *given], cwd=workplace, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def configurations() -> list[tuple[str, str]]:
    """(page, YAML block) of each configuration that a page shows."""
    return [
        (name(page), body)
        for page in PAGES
        for language, body in FENCE.findall(text(page))
        if language == "yaml" and "scheme:" not in body
    ]


@pytest.mark.parametrize(("page", "body"), configurations(), ids=lambda value: str(value)[:40])
def test_every_configuration_shown_is_valid(page, body):
    from stepcredit.config_files import load_config

    load_config(ROOT / "config/config.yaml", overrides=yaml.safe_load(body))


def test_the_picture_of_the_rules_shows_each_rule():
    drawn = set(re.findall(r">(\w+)</text>", (ROOT / "docs/rulegraph.svg").read_text()))
    rules = {
        rule
        for file in (ROOT / "rules").glob("*.smk")
        for rule in re.findall(r"^(?:rule (\w+)|use rule \w+ as (\w+))", file.read_text(), re.MULTILINE)
        for rule in rule
        if rule
    }
    apart = {
        "audit",
        "model_cards",
        "make_random_model",
        "import_smollm2",
    }  # targets of their own; some configurations'
    assert drawn - {"all"} == rules - apart, "make rulegraph draws it anew"
