"""How numba compiles kernels that call kernels: the code of all of them is optimised once, as one unit.

By default numba optimises a function and generates machine code for it, and does both again for the copies of it in every
function that calls it, level by level. Moreover, copies of a function in several cached functions share one symbol. Which of
them runs depends on what has been loaded first, and so would the last bits of sums that may be reordered.

Here a call from one kernel to another refers to an *inner* function: intermediate code, which is not translated to machine
code, and is optimised only if its sums may be reordered. The *outer* function, which Python calls, contains private copies of
the inner functions that it needs.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import dispatcher
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import IRLegalization

# These modules set attributes that their types do not mention.
settings: Any = numba.config
_FunctionCompiler: Any = getattr(dispatcher, "_FunctionCompiler")  # noqa: B009  # a private name
_Dispatcher: Any = CPUDispatcher
_ENVIRONMENT_PREFIX = "_ZN08NumbaEnv"


class _NoEngine:
    """The part of a code generator that numba uses after it has made the library of an inner function."""

    @staticmethod
    def set_env(name: str, env: object) -> None:
        """Do nothing. Environments are set for outer functions."""


class _InnerLibrary(JITCodeLibrary):
    """Intermediate code of an inner function.

    If its sums may be reordered, it is optimised before it is copied, so that all callers add in the same order.
    """

    may_reorder = False

    @property
    def codegen(self) -> Any:
        return _NoEngine

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        if self.may_reorder:
            super()._optimize_functions(ll_module)

    def _optimize_final_module(self) -> None:
        if self.may_reorder:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class _OuterLibrary(JITCodeLibrary):
    """Machine code of an outer function. Linked functions are private, so that no other copy replaces them."""

    def finalize(self) -> None:
        self._own = {function.name for function in self._final_module.functions if not function.is_declaration}
        super().finalize()
        codegen: Any = self._codegen
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name) if variable.name.startswith(_ENVIRONMENT_PREFIX) else None
            if environment is not None:
                codegen.set_env(variable.name, environment)

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in self._own:
                function.linkage = "internal"
        super()._optimize_final_module()


@register_pass(mutates_CFG=False, analysis_only=True)
class _CreateInnerLibrary(FunctionPass):
    """Replace the library into which numba lowers a function, and omit the wrapper for calls from Python."""

    _name = "coterie_create_inner_library"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = _InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.may_reorder = bool(state.flags.fastmath)
        state.flags.no_cpython_wrapper = True
        return False


class _InnerPipeline(CompilerBase):
    """numba's passes, with the library of inner functions."""

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes.insert([one for one, _ in manager.passes].index(IRLegalization), (_CreateInnerLibrary, "inner library"))
        manager.finalize()
        return [manager]


class _Flags(Flags):
    """Flags with fast comparisons. Type inference compares them for every operation and each of its implementations."""

    def __hash__(self) -> int:
        return _FLAGS_HASH

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Flags) and self._values.keys() == other._values.keys():
            return bool(self._values == other._values)
        return bool(super().__eq__(other))


_FLAGS_HASH = hash(Flags())  # The same for all flags, because it depends on their names only.


class _InnerCompiler(_FunctionCompiler):
    """Compiler of inner functions."""

    def _customize_flags(self, flags: Any) -> Any:
        return _Flags(flags)


class _OuterCompiler(_FunctionCompiler):
    """Compiler of outer functions: inner functions with a wrapper for calls from Python."""

    def __init__(self, inner: CPUDispatcher, *given: Any) -> None:
        super().__init__(*given)
        self.inner = inner

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        self.inner.compile(tuple(args))
        result: Any = self.inner.overloads[tuple(args)]
        context = result.target_context
        library = _OuterLibrary(context.codegen(), result.library.name)
        library.enable_object_caching()
        library.add_linking_library(result.library)
        context.create_cpython_wrapper(library, result.fndesc, result.environment, result.call_helper, release_gil=True)
        library.finalize()
        entry = context.get_executable(library, result.fndesc, result.environment)
        return result._replace(library=library, entry_point=entry, metadata={})


class Kernel(CPUDispatcher):
    """A function that is compiled when it is first called with arguments of new types. It releases the GIL."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals or {}, targetoptions or {})
        given = py_func, self.targetdescr, self.targetoptions, self.locals, _InnerPipeline
        self._inner = _Dispatcher(py_func, self.locals, self.targetoptions)
        self._inner._compiler = _InnerCompiler(*given)
        self._compiler: Any = _OuterCompiler(self._inner, *given)

    def compile(self, sig: Any) -> Any:
        """Compile the outer function for the given types, or load it from the cache."""
        with _without_collections():
            return super().compile(sig)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the type of a call from another kernel."""
        return self._inner.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """Return what numba uses as the key of the inner function."""
        return self._inner.get_overload(sig)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Suspend the collection of cyclic garbage, which takes a tenth of the time of compilations and finds little."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def compiled(function: Callable[..., Any], *, cache: bool, options: dict[str, Any]) -> Any:
    """Return a function as a kernel."""
    if settings.DISABLE_JIT:
        return function
    kernel = Kernel(function, targetoptions={**options, "nopython": True, "boundscheck": None})
    if cache:
        kernel.enable_caching()
    return kernel
