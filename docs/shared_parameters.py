"""Show docstrings as `localshapley.parameter_docs.documented` completes them: with what shared parameters mean."""

import inspect
from importlib import import_module
from typing import Any

import griffe


class SharedParameters(griffe.Extension):
    """Take the docstring of what is decorated with `documented` from the imported object."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        decorators = getattr(obj, "decorators", ())
        if obj.docstring and any(str(one.value) == "documented" for one in decorators):
            imported = import_module(obj.module.path)
            for name in obj.path.removeprefix(f"{obj.module.path}.").split("."):
                imported = getattr(imported, name)
            obj.docstring.value = inspect.cleandoc(imported.__doc__)
