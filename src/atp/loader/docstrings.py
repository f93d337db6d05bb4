"""What the docstrings below a record's fields say, read from its source when somebody asks."""

import ast
import inspect
from functools import cache
from itertools import pairwise

from pydantic import BaseModel


def field_docstrings(shape: type[BaseModel]) -> dict[str, str]:
    """The docstring of each field, inherited ones included; nothing where the source isn't at hand."""
    found: dict[str, str] = {}
    for base in reversed(shape.__mro__):
        if issubclass(base, BaseModel):
            found |= _module_docstrings(base.__module__).get(base.__qualname__, {})
    return found


@cache
def _module_docstrings(module: str) -> dict[str, dict[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(__import__(module, fromlist=["*"])))
    except (OSError, TypeError, ImportError, SyntaxError):
        return {}
    return {node.name: _own_docstrings(node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _own_docstrings(shape: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, below in pairwise(shape.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found
