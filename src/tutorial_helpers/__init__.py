"""Honest timing and clear figures for lessons about fast and slow Python.

Names are imported on first use, so that `import tutorial_helpers` stays instant and starts no framework.
"""

from importlib import import_module

_HOME = {
    "timing": ["Case", "Caveat", "Comparison", "Crossover", "MeasurementError", "Ratio", "Sweep", "Timing",
               "compare", "measure", "seconds", "sweep"],
    "frameworks": ["optional", "wait"],
    "machine": ["compiler", "describe", "doctor", "largest", "prepare", "stamp"],
    "claims": ["judge", "ledger"],
    "plotting": ["Figure", "explore", "plot_break_even", "plot_comparison", "plot_lines", "plot_stages", "plot_sweep",
                 "plot_waterfall"],
    "exercises": ["exercise"],
    "predictions": ["predict"],
    "learner": ["progress"],
    "inspecting": ["View", "assembly", "bytecode", "hlo", "jaxpr", "stablehlo", "tf_graph", "tf_hlo"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__version__ = "0.1.0"
__all__ = sorted(_MODULE_OF)


def __getattr__(name):
    if name not in _MODULE_OF:
        raise AttributeError(f"tutorial_helpers has no {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__():
    return __all__
