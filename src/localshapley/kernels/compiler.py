"""How numba compiles kernels: with less work than it would take by default, for the same code.

Kernels are plain loops over arrays whose references are not counted, and nobody calls a part from Python. So four
things can go. No machine code is made of a part: the kernel that calls it contains it. (There is one version of it
then. With two, a process that compiled would run the other one than later processes, with other last bits where sums
may be taken in any order.) A part is not optimised by itself, unless its sums may. The type of an operation is found
once in a function: numba tries up to a dozen ways to add two numbers, for each addition again. Variables need not be
deleted, and there are no expressions of whole arrays to be rewritten.
"""

# mypy: allow-untyped-calls
# What numba is made of has no types.

from __future__ import annotations

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import IRLegalization, NativeLowering, NopythonRewrites, NopythonTypeInference


class KernelCompiler(CompilerBase):
    """Compiles a function that Python calls."""

    lowering: Any = NativeLowering

    def define_pipelines(self) -> list[Any]:
        """The steps from bytecode to machine code."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        needless = () if self.state.flags.nrt else (NopythonRewrites, IRLegalization)
        steps.passes = [
            ({NopythonTypeInference: InferTypes, NativeLowering: self.lowering}.get(step, step), why)
            for step, why in steps.passes
            if step not in needless
        ]
        steps.finalize()
        return [steps]


class _Remembering:
    """A typing context that finds the type of a call once."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._found: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
        """Signature of a call."""
        call = function, args, tuple(kws.items())
        if call not in self._found:
            self._found[call] = self._context.resolve_function_type(function, args, kws)
        return self._found[call]


@register_pass(mutates_CFG=True, analysis_only=False)
class InferTypes(NopythonTypeInference):
    """Type inference that does nothing twice."""

    _name = "infer_types"

    def run_pass(self, state: Any) -> Any:
        """Run it."""
        context = state.typingctx
        state.typingctx = _Remembering(context)
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = context


class _Bitcode(JITCodeLibrary):
    """The code of a part, which is linked into kernels and never runs by itself."""

    in_order = False
    """Whether arithmetic is done in the order in which it is written, however the code is optimised."""

    def _optimize_final_module(self) -> None:
        if not self.in_order:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerPart(NativeLowering):
    """Lowering to bitcode."""

    _name = "lower_part"

    def run_pass(self, state: Any) -> Any:
        """Run it."""
        library = state.library = _Bitcode(state.targetctx.codegen(), state.func_id.func_qualname)
        library.in_order = not state.flags.fastmath
        state.flags.no_compile = True
        done = super().run_pass(state)
        state.flags.no_compile = False
        library.finalize()
        lowered = state["cr"]
        nothing = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), lowered.fndesc.qualname, "", 0, lowered.env, (library,)
        )
        state.targetctx.insert_user_function(nothing, lowered.fndesc, [library])
        state["cr"] = lowered._replace(cfunc=nothing)
        return done


class PartCompiler(KernelCompiler):
    """Compiles a function that kernels call."""

    lowering = LowerPart
