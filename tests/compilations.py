"""Pieces of programs that tell, in a process of their own, which kernels are compiled."""

LISTENING = """
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
"""

KERNELS = """
import importlib, pkgutil
from numba.core.registry import CPUDispatcher
import localshapley.kernels as package

def kernels():
    found = {}
    for module in pkgutil.iter_modules(package.__path__):
        for name, value in vars(importlib.import_module(f"localshapley.kernels.{module.name}")).items():
            if isinstance(value, CPUDispatcher) and not name.startswith("_"):
                options = value.targetoptions
                if not options.get("no_cpython_wrapper") and options.get("inline") != "always":
                    found[name] = bool(value.overloads)
    return found
"""
