"""What the source of a plugin's module says about it without being run.

Only certain things are said: a module that is not there, a source that does not parse, an attribute that nothing in the
module defines, an import at the module's top of a package that is not installed. Everything else is left open.
"""

from __future__ import annotations

import ast
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from raptor_core.plugins.loading import VALUE_FORM

_LARGEST_SOURCE = 1 << 20


@attrs.frozen
class StaticFacts:
    """``summary`` is empty and ``fault`` None when the source does not say."""

    summary: str = ""
    fault: str | None = None


@attrs.define
class StaticReader:
    """Reads each module once."""

    _modules: dict[str, ast.Module | str | None] = attrs.field(factory=dict, init=False)
    _top_level: dict[str, bool] = attrs.field(factory=dict, init=False)

    def read(self, value: str) -> StaticFacts:
        """What can be said of the object that an entry point's value names."""
        form = VALUE_FORM.fullmatch(value)
        if form is None:
            return StaticFacts(fault=f"the entry point's value '{value}' is not of the form module:attribute")
        name = form["module"]
        if name not in self._modules:
            self._modules[name] = _parse(name)
        tree = self._modules[name]
        if not isinstance(tree, ast.Module):
            return StaticFacts(fault=tree)
        missing = next((package for package in _imports(tree) if not self._installed(package)), None)
        if missing is not None:
            return StaticFacts(fault=f"it imports '{missing}', which is not installed")
        attribute = form["attribute"]
        if attribute is None or "." in attribute:
            return StaticFacts(_summary_of_module(tree) if attribute is None else "")
        return _facts(tree, name, attribute)

    def _installed(self, package: str) -> bool:
        if package not in self._top_level:
            known = package in sys.modules or package in sys.stdlib_module_names
            self._top_level[package] = known or _find(package, None) is not None
        return self._top_level[package]


def _find(name: str, path: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
    """The spec of one module, found without importing its parents (None: not found)."""
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        try:
            spec = find_spec(name, path) if find_spec is not None else None
        except Exception:
            continue
        if spec is not None:
            return spec  # type: ignore[no-any-return]
    return None


def _parse(module: str) -> ast.Module | str | None:
    """The module's syntax tree; or what is wrong with it; or None when it has no source to read."""
    path: Sequence[str] | None = None
    spec = None
    parts = module.split(".")
    for k in range(len(parts)):
        name = ".".join(parts[: k + 1])
        spec = _find(name, path)
        if spec is None:
            return f"there is no module '{name}'"
        path = list(spec.submodule_search_locations or ())
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    try:
        source = Path(spec.origin)
        if source.stat().st_size > _LARGEST_SOURCE:
            return None
        return ast.parse(source.read_bytes())
    except SyntaxError as error:
        return f"SyntaxError in {module}, line {error.lineno}: {error.msg}"
    except (OSError, ValueError, RecursionError):
        return None


def _imports(tree: ast.Module) -> Iterator[str]:
    """The packages imported at the top of a module, not in any block."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def _facts(tree: ast.Module, module: str, attribute: str) -> StaticFacts:
    value = _assigned(tree.body, attribute)
    if value is None:
        return StaticFacts() if _may_define(tree, attribute) else StaticFacts(fault=f"{module} has no '{attribute}'")
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        called = value.func.id
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == called:
                return StaticFacts(_literal(node.body, "summary"))
    return StaticFacts()


def _may_define(tree: ast.Module, attribute: str) -> bool:
    """Whether anything in the module could define the name: any block, import, function, or ``__getattr__``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == attribute:
            return True
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in (attribute, "__getattr__"):
            return True
        if isinstance(node, ast.Import | ast.ImportFrom) and any(
            (alias.asname or alias.name) in (attribute, "*") for alias in node.names
        ):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("globals", "exec"):
            return True
    return False


def _summary_of_module(tree: ast.Module) -> str:
    return _literal(tree.body, "summary")


def _literal(body: Sequence[ast.stmt], name: str) -> str:
    """The literal text that a block assigns to a name, or an empty one."""
    value = _assigned(body, name)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _assigned(body: Sequence[ast.stmt], name: str) -> ast.expr | None:
    """What a block assigns to a name, last."""
    value: ast.expr | None = None
    for node in body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        if any(_is_name(target, name) for target in targets):
            value = node.value
    return value


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
