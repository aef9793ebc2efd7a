"""The shape that a machine keeps: sizes, docstrings, no code in `__init__`, no dead module.

The exceptions are named here and may only become fewer.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
SOURCE_FOLDERS = ("crds", "broker", "operator", "spark-jobs")
FOLDERS = (*SOURCE_FOLDERS, "tests", "bench", "examples", "e2e", "docs")
NEVER_PACKAGES = ("operator", "broker", "crds", "spark-jobs", "tests/operator")
# Started by name, never imported.
ENTRY_POINTS = {
    "ibrik_broker.__main__",
    "ibrik_cli.main",
    "ibrik_operator.__main__",
    "ibrik_operator.uninstall",
    "ibrik_spark.__main__",
}
BANNED_CALLS = {"time.sleep", "datetime.now", "datetime.utcnow", "asyncio.create_task", "os.system"}

FILES = sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py"))
SOURCES = [p for p in FILES if p.relative_to(ROOT).parts[0] in SOURCE_FOLDERS]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(), str(path)) for path in FILES}


def test_no_file_is_over_400_lines() -> None:
    long = {name_of(p): n for p in FILES if (n := len(p.read_text().splitlines())) > MAX_FILE_LINES}
    assert long == {}


def test_no_function_is_over_60_lines(trees: dict[Path, ast.Module]) -> None:
    long = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_every_module_says_what_lives_in_it(trees: dict[Path, ast.Module]) -> None:
    assert [name_of(p) for p, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_top_folders_are_no_packages() -> None:
    assert [f for f in NEVER_PACKAGES if (ROOT / f / "__init__.py").exists()] == []


def test_an_init_holds_no_code(trees: dict[Path, ast.Module]) -> None:
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign)
    bad = [
        name_of(path)
        for path, tree in trees.items()
        if path.name == "__init__.py" and not all(isinstance(node, allowed) for node in tree.body)
    ]
    assert bad == []


def test_every_module_is_imported_by_another(trees: dict[Path, ast.Module]) -> None:
    imported: set[str] = set()
    for path, tree in trees.items():
        package = (
            module_of(path).split(".")
            if path.name == "__init__.py"
            else module_of(path).split(".")[:-1]
        )
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
                module = ".".join(filter(None, (base, node.module)))
                imported.add(module)
                imported.update(f"{module}.{alias.name}" for alias in node.names)
    dead = [
        module_of(path)
        for path in SOURCES
        if path.name != "__init__.py"
        and "migrations" not in path.parts
        and module_of(path) not in imported | ENTRY_POINTS
    ]
    assert dead == []


def test_no_banned_call(trees: dict[Path, ast.Module]) -> None:
    found = [
        f"{name_of(path)}:{node.lineno} {ast.unparse(node.func)}"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in BANNED_CALLS
    ]
    assert found == []
