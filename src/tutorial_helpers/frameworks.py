"""One adapter per array library: how to wait for its work, and what its arrays are.

This is the only module that knows a library by name. It never imports one that the learner has not
imported: an array of a library that is not in `sys.modules` cannot exist.
"""

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import os
import sys
import tempfile
import types
from collections.abc import Mapping

import numpy as np

__all__ = ["optional", "wait"]

_INSTALL = {"tensorflow": "tensorflow-cpu", "jax": "jax", "torch": "torch", "numba": "numba", "Cython": "Cython",
            "haiku": "dm-haiku", "rlax": "rlax", "numexpr": "numexpr"}
_ATOMS = (str, bytes, int, float, complex, bool, type(None), range, slice, type, types.ModuleType, np.dtype)
_TAKES = {"tensorflow": 600 * 2**20}  # bytes that loading it and a first call take


@contextlib.contextmanager
def quiet_stderr():
    """Hold back what native code writes to file descriptor 2; show it only if the block raises."""
    sys.stderr.flush()
    try:
        saved = os.dup(2)
    except OSError:  # no stderr at all, as under pythonw
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(saved, 2)
            held.seek(0)
            os.write(2, held.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def optional(name, shows="this part"):
    """Import a library that a page can do without.

    name: the module's name, such as "tensorflow". shows: what the page would show with it.
    Returns the module, or None after one printed line that says what is missing (the library, or memory for it) and
    what to do.
    TensorFlow and others log from C++ while they load; that noise is held back.
    """
    if importlib.util.find_spec(name) is None:
        print(f"{name} is not installed, so {shows} is skipped. To see it, run "
              f"`%pip install {_INSTALL.get(name, name)}` and restart the kernel.")
        return None
    from .machine import memory_free  # machine itself needs this module
    free = memory_free()
    if name not in sys.modules and free < _TAKES.get(name, 0):
        print(f"{name} takes about {_TAKES[name] / 2**20:.0f} MiB and {free / 2**20:.0f} are free, so {shows} is "
              "skipped. To see it, close other notebooks and programs, and restart the kernel.")
        return None
    try:
        with quiet_stderr():
            return importlib.import_module(name)
    except Exception as error:  # a broken installation must not take the rest of the page along
        reason = str(error).strip().splitlines()[:1]
        print(f"{name} is installed but does not load ({type(error).__name__}: {''.join(reason)}), so {shows} is "
              f"skipped. Reinstalling it usually helps: `%pip install --force-reinstall {_INSTALL.get(name, name)}`.")
        return None


class Adapter:
    """What the clock needs to know about one library's arrays. The defaults fit a NumPy array."""

    module = "numpy"
    on_host = True  # lives in ordinary memory that Python can read directly

    def owns(self, value):
        return isinstance(value, (np.ndarray, np.generic))

    def wait(self, value):
        """Return once the work that produces `value` is done."""

    def dtype(self, value):
        return str(value.dtype)

    def device(self, value):
        """The kind of device: "cpu", "gpu", "tpu", …"""
        return "cpu"

    def nbytes(self, value):
        return value.nbytes

    def numpy(self, value):
        """The values in host memory."""
        return np.asarray(value)

    def put(self, array):
        """This host array as one of the library's own, on its default device."""
        return np.array(array)

    def span(self, value):
        """(first, last + 1) address of the array's memory, or None where that can't be told."""
        return None

    def compiled(self, fn):
        """Is `fn` a function that this library compiles?"""
        return False

    def compile_count(self, fn):
        """How often `fn` has been compiled or traced so far."""
        return 0


class NumPy(Adapter):
    def span(self, value):
        if isinstance(value, np.generic):
            return None
        first = value.__array_interface__["data"][0]
        steps = [stride * (n - 1) for stride, n in zip(value.strides, value.shape, strict=True)]
        if value.size == 0:
            return None
        return (first + sum(s for s in steps if s < 0), first + sum(s for s in steps if s > 0) + value.itemsize)

    def nbytes(self, value):
        # A broadcast view claims more bytes than there is memory behind it.
        span = self.span(value)
        return value.nbytes if span is None else min(value.nbytes, span[1] - span[0])


class Jax(Adapter):
    module, on_host = "jax", False

    def owns(self, value):
        jax = sys.modules["jax"]
        return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)

    def wait(self, value):
        if not value.is_deleted():
            value.block_until_ready()

    def device(self, value):
        return next(iter(value.devices())).platform

    def numpy(self, value):
        jax = sys.modules["jax"]
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        return np.asarray(value)

    def put(self, array):
        return sys.modules["jax"].device_put(array)

    def span(self, value):
        try:
            first = value.unsafe_buffer_pointer()
        except Exception:  # sharded over devices, or already donated
            return None
        return first, first + value.nbytes

    def compiled(self, fn):
        if isinstance(fn, type) or not callable(fn):
            return False
        staged = hasattr(fn, "lower") and hasattr(fn, "trace")
        return staged or isinstance(fn, sys.modules["jax"].stages.Compiled)

    def compile_count(self, fn):
        return fn._cache_size() if hasattr(fn, "_cache_size") else 0


class TensorFlow(Adapter):
    module, on_host = "tensorflow", False

    def owns(self, value):
        tf = sys.modules["tensorflow"]
        return isinstance(value, (tf.Tensor, tf.Variable)) and hasattr(value, "numpy")

    def wait(self, value):
        # On the CPU an eager result is complete when the call returns.
        if self.device(value) != "cpu":
            sys.modules["tensorflow"].test.experimental.sync_devices()

    def dtype(self, value):
        return value.dtype.name

    def device(self, value):
        return (value.device.rsplit("device:", 1)[-1].split(":")[0] or "cpu").lower()

    def nbytes(self, value):
        return value.dtype.size * int(np.prod(value.shape, dtype=np.int64))

    def numpy(self, value):
        return value.numpy()

    def put(self, array):
        return sys.modules["tensorflow"].constant(array)

    def span(self, value):
        try:
            seen = np.asarray(memoryview(value))
        except Exception:  # on an accelerator, a variable, or a dtype without a buffer format
            return None
        return NumPy().span(seen)

    def compiled(self, fn):
        return hasattr(fn, "experimental_get_tracing_count") or hasattr(fn, "structured_input_signature")

    def compile_count(self, fn):
        return fn.experimental_get_tracing_count() if hasattr(fn, "experimental_get_tracing_count") else 0


class Torch(Adapter):
    module, on_host = "torch", False

    def owns(self, value):
        return isinstance(value, sys.modules["torch"].Tensor)

    def wait(self, value):
        if value.device.type in ("cuda", "xpu", "mps"):
            getattr(sys.modules["torch"], value.device.type).synchronize()

    def dtype(self, value):
        return str(value.dtype).removeprefix("torch.")

    def device(self, value):
        return {"cuda": "gpu"}.get(value.device.type, value.device.type)

    def nbytes(self, value):
        return value.numel() * value.element_size()

    def numpy(self, value):
        return value.detach().cpu().numpy()

    def put(self, array):
        return sys.modules["torch"].tensor(array)

    def span(self, value):
        return (value.data_ptr(), value.data_ptr() + self.nbytes(value)) if value.device.type == "cpu" else None


class Numba(Adapter):
    module = "numba"

    def owns(self, value):
        return False  # Numba works on NumPy's arrays

    def compiled(self, fn):
        return hasattr(fn, "signatures") and hasattr(fn, "py_func")

    def compile_count(self, fn):
        return len(fn.signatures)


_ADAPTERS = [NumPy(), Jax(), TensorFlow(), Torch(), Numba()]


def adapters():
    """The adapters of the libraries that are loaded now."""
    return [adapter for adapter in _ADAPTERS if _loaded(adapter.module)]


def _loaded(name):
    module = sys.modules.get(name)
    # A module that is half imported, or blocked with None, has no version.
    return module is not None and hasattr(module, "__version__")


def adapter_of(value):
    """The adapter that owns this array, or None for anything else."""
    return next((adapter for adapter in adapters() if adapter.owns(value)), None)


def adapter_for(name):
    """The adapter of the library called `name`."""
    return next(adapter for adapter in _ADAPTERS if adapter.module == name)


def compiler_of(fn):
    """The adapter whose library compiles `fn`, or None for a plain function."""
    return next((adapter for adapter in adapters() if adapter.compiled(fn)), None)


def leaves(value, depth=8):
    """All arrays inside `value`: containers, dataclasses, JAX pytrees and objects that hold them."""
    return list(_walk(value, depth, set()))


def _walk(value, depth, seen):
    if isinstance(value, _ATOMS) or depth < 0 or id(value) in seen:
        return
    seen.add(id(value))
    if adapter_of(value):
        yield value
        return
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        if len(value) > 1000 and isinstance(value, (list, tuple)) and isinstance(value[0], _ATOMS):
            return  # a long list of plain numbers holds no arrays
        parts = list(value)
    elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return
    else:
        parts = _attributes(value)
    for part in parts:
        yield from _walk(part, depth - 1, seen)


def _attributes(value):
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    slots = [name for kind in type(value).__mro__ for name in _names(kind.__dict__.get("__slots__", ()))]
    held = [getattr(value, name, None) for name in slots if not name.startswith("__")]
    return held + list(getattr(value, "__dict__", {}).values())


def _names(slots):
    return (slots,) if isinstance(slots, str) else tuple(slots)


def wait(result):
    """Return `result` once all asynchronous work in it is done, wherever in it that is.

    Knows JAX, TensorFlow and PyTorch arrays in containers, pytrees, dataclasses and plain objects.
    """
    for leaf in leaves(result):
        adapter_of(leaf).wait(leaf)
    return result


def waiter(result):
    """The cheapest function that waits for results like this one, or None if there is nothing to wait for."""
    found = leaves(result)
    pending = [leaf for leaf in found if not adapter_of(leaf).on_host]
    if not pending:
        return None
    if len(found) == 1 and found[0] is result:
        kind = adapter_of(result)
        if kind.module == "jax":
            return type(result).block_until_ready
        if kind.device(result) == "cpu":
            return None
        return kind.wait
    return wait


# ---------------------------------------------------------------------------------------------------------------------
# What a function reaches, and how often it compiles


def reachable(fn, depth=3, limit=500):
    """Objects that `fn` can touch without being passed them: closure cells, globals it names, bound objects.

    Modules appear as themselves, so a caller can see that a function uses `jax.numpy`.
    """
    found, queue, seen = [], [(fn, depth)], set()
    while queue and len(found) < limit:
        value, left = queue.pop(0)
        if id(value) in seen or left < 0:
            continue
        seen.add(id(value))
        found.append(value)
        if isinstance(value, types.ModuleType) or adapter_of(value):
            continue
        queue += [(part, left - 1) for part in _parts(value) if not isinstance(part, _ATOMS) or
                  isinstance(part, types.ModuleType)]
    return found[1:]


def _parts(value):
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, (list, tuple, set)):
        return list(value)[:50]
    if isinstance(value, dict):
        return list(value.values())[:50]
    parts = []
    inner = next((getattr(value, name) for name in ("__wrapped__", "python_function", "py_func")
                  if hasattr(value, name)), None)
    if inner is not None:
        parts.append(inner)
    if isinstance(value, types.FunctionType):
        for cell in value.__closure__ or ():
            with contextlib.suppress(ValueError):  # a cell that is not filled yet
                parts.append(cell.cell_contents)
        parts += [value.__globals__[name] for name in _global_names(value.__code__) if name in value.__globals__]
    elif not isinstance(value, (type, types.BuiltinFunctionType)) and callable(value):
        parts += list(getattr(value, "__dict__", {}).values())
    return parts


def _global_names(code):
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _global_names(constant)
    return names


def frameworks_used(fn, args):
    """Names of the array libraries, NumPy and Numba apart, that this call may run work in."""
    touched = [*leaves(args), *reachable(fn), fn]
    names = set()
    for adapter in adapters():
        if adapter.module in ("numpy", "numba"):
            continue
        for value in touched:
            module = value.__name__.split(".")[0] if isinstance(value, types.ModuleType) else ""
            if module == adapter.module or adapter.owns(value) or adapter.compiled(value):
                names.add(adapter.module)
    return names


def may_compile(fn, args):
    """Could a first call of this have spent its time on compiling?"""
    if frameworks_used(fn, args):
        return True
    numba = sys.modules.get("numba")
    return numba is not None and any(value is numba or _ADAPTERS[-1].compiled(value) for value in [fn, *reachable(fn)])


_events = {"trace": 0.0, "lower": 0.0, "compile": 0.0, "compiles": 0, "traces": 0}
_EVENT_STAGE = {"jaxpr_trace_duration": "trace", "jaxpr_to_mlir_module_duration": "lower",
                "backend_compile_duration": "compile"}


@functools.cache
def _listen():
    """Let JAX report each trace, lowering and compilation from now on. Once per process."""
    def heard(name, duration, **_):
        stage = _EVENT_STAGE.get(name.rsplit("/", 1)[-1])
        if stage:
            _events[stage] += duration
            _events["compiles"] += stage == "compile"
            _events["traces"] += stage == "trace"
    sys.modules["jax"].monitoring.register_event_duration_secs_listener(heard)


def jax_events():
    """Seconds spent so far in JAX's trace, lower and compile, with counts of compilations and traces."""
    if _loaded("jax"):
        _listen()
    return dict(_events)


def compilations(fn):
    """A count that grows whenever `fn`, or a compiled function that it reaches, compiles or is traced again."""
    own = sum(adapter.compile_count(value) for value in [fn, *reachable(fn)] for adapter in adapters()
              if adapter.module != "jax" and adapter.compiled(value))
    return own + jax_events()["compiles"]


_TRACING_CODE = {("tensorflow", "func_graph_from_py_func"), ("numba", "_compile_for_args")}


def traces_in_one_call(call):
    """How often TensorFlow or Numba traces or compiles during `call()`, functions made inside it included.

    Neither library offers a global counter, so this watches their tracing entry points through
    `sys.setprofile`. The call is slow under it: never time it.
    """
    count = 0

    def watch(frame, event, _):
        nonlocal count
        if event == "call" and any(name == frame.f_code.co_name and f"{os.sep}{library}{os.sep}" in
                                   frame.f_code.co_filename for library, name in _TRACING_CODE):
            count += 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        wait(call())
    finally:
        sys.setprofile(before)
    return count


# ---------------------------------------------------------------------------------------------------------------------
# What a jitted JAX function does with its arguments


def jax_work(fn, args):
    """How much of a jitted function's work depends on its arguments, and how much reaches its result.

    Returns {"total", "constant", "dead"} in element operations, counted over the jaxpr's equations, plus
    {"inputs": number of traced arguments}; None where `fn` is no jitted JAX function.
    """
    if not (_loaded("jax") and hasattr(fn, "trace") and _ADAPTERS[1].compiled(fn)):
        return None
    try:
        closed = fn.trace(*args).jaxpr
    except Exception:  # static arguments by keyword, or an API change: the caveat is then simply not given
        return None
    jaxpr = closed.jaxpr if hasattr(closed, "jaxpr") else closed
    live = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    useful = set()
    for index in range(len(jaxpr.eqns) - 1, -1, -1):
        eqn = jaxpr.eqns[index]
        if eqn.effects or any(v in live for v in eqn.outvars):
            useful.add(index)
            live.update(v for v in eqn.invars if not hasattr(v, "val"))
    varying, work = set(jaxpr.invars), {"total": 0.0, "constant": 0.0, "dead": 0.0, "inputs": len(jaxpr.invars)}
    for index, eqn in enumerate(jaxpr.eqns):
        cost = _cost(eqn)
        work["total"] += cost
        if index not in useful:
            work["dead"] += 0.0 if _from_autodiff(eqn) else cost
        elif any(v in varying for v in eqn.invars if not hasattr(v, "val")):
            varying.update(eqn.outvars)
        else:
            work["constant"] += cost
    return work


def _from_autodiff(eqn):
    """Did grad or jvp write this equation? They compute the function's value along with its derivative, used or not."""
    names = str(getattr(eqn.source_info, "name_stack", ""))
    return "jvp" in names or "transpose" in names


def _size(var):
    return float(np.prod(getattr(var.aval, "shape", ()), dtype=np.float64))


def _cost(eqn):
    """Element operations of one equation: elements touched, times the inner length for a matrix product or a loop."""
    inner = 1.0
    if eqn.primitive.name == "dot_general":
        (contracting, _), _ = eqn.params["dimension_numbers"]
        shape = eqn.invars[0].aval.shape
        inner = 2.0 * np.prod([shape[i] for i in contracting], dtype=np.float64)
    for param in eqn.params.values():
        sub = getattr(param, "jaxpr", None)
        if sub is not None and hasattr(sub, "eqns"):
            return eqn.params.get("length", 1) * sum(map(_cost, sub.eqns))
    return inner * max([_size(v) for v in [*eqn.outvars, *eqn.invars]], default=1.0)
