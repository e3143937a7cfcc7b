"""Answers to the exercises of page 01 as learners give them."""

WEIGHT = "import sys\ndef weight(values):\n    "
ROWS = "def pairs_by_row(x, y, r):\n    "
SMOOTH = "import numba\n@numba.njit\ndef smooth(x, a):\n    "
DECLARE = "import ctypes, math\ndef declare(library):\n    "

BY_ROW = """    count = 0
    for i in range(len(x)):
        count += np.count_nonzero(INSIDE)
    return count
"""
CLOSE = "(x[i] - x[:i]) ** 2 + (y[i] - y[:i]) ** 2 < r * r"
ROWS_BY = "def pairs_by_row(x, y, r):\n" + BY_ROW
PURE = """
def pairs_by_row(x, y, r):
    count, limit = 0, float(r) ** 2
    x, y = x.tolist(), y.tolist()
    for i in range(len(x)):
        for j in range(i):
            dx, dy = x[i] - x[j], y[i] - y[j]
            count += dx * dx + dy * dy < limit
    return count
"""
TABLE = """
def table(x, y, r):
    dx, dy = x[:, None] - x, y[:, None] - y
    return ((dx * dx + dy * dy < r * r).sum() - len(x)) // 2
"""
SWEEP = """
def pairs_by_row(x, y, r):
    points, count, first, r = sorted(zip(x.tolist(), y.tolist())), 0, 0, float(r)
    for i, (px, py) in enumerate(points):
        while px - points[first][0] > r:
            first += 1
        for qx, qy in points[first:i]:
            if -r < py - qy < r:
                count += (px - qx) ** 2 + (py - qy) ** 2 < r * r
    return count
"""
BLOCKS = """
def pairs_by_row(x, y, r):
    count = 0
    for i in range(0, len(x), 50):
        dx, dy = x[i:i + 50, None] - x, y[i:i + 50, None] - y
        count += np.count_nonzero(dx * dx + dy * dy < r * r)
    return (count - len(x)) // 2
"""
LOOP = """y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = a * x[i] + (1 - a) * y[i - 1]
    return y"""

WRONG = {
    "01.1": [
        ("lookups = 2", "how often it stands in the bytecode"),
        ("lookups = 1000", "are global"),
        ("lookups = 3000", "another instruction fetches it"),
        ("lookups = 4000", "not looked up by name at all"),
        ("lookups = 2001", "think how often that part is run"),
        ("lookups = '2000'", "without quotes"),
    ],
    "01.2": [
        (WEIGHT + "return sys.getsizeof(values)", "that is the list alone"),
        (WEIGHT + "return sum(map(sys.getsizeof, values))", "those are the floats alone"),
        (WEIGHT + "return sys.getsizeof(values) + sum(map(sys.getsizeof, values))", "in memory only once"),
        (WEIGHT + "return sys.getsizeof(values) + sum(map(sys.getsizeof, set(values)))",
         "separate objects your function gives"),
        (WEIGHT + "return np.array(values).nbytes", "an array of as many numbers"),
        (WEIGHT + "return 32 * len(values)", "add up `sys.getsizeof`"),
        (WEIGHT + "return sys.getsizeof(values) + len(values) * sys.getsizeof(values[0])", "in memory only once"),
        (WEIGHT + "n = len({id(v) for v in values})\n    return sys.getsizeof(values) + n * sys.getsizeof(values[0])",
         "IndexError"),
        (WEIGHT + "return f'{sys.getsizeof(values)} bytes'", "without quotes"),
    ],
    "01.3": [
        ('printed = {"A": 0, "B": 0, "C": 2, "D": 1, "E": 0}', "About A: dividing by zero"),
        ('printed = {"A": 2, "B": 2, "C": 2, "D": 1, "E": 0}', "About B: a `return` outside"),
        ('printed = {"A": 2, "B": 0, "C": 1, "D": 1, "E": 0}', "About C: `def` makes a function"),
        ('printed = {"A": 2, "B": 0, "C": 0, "D": 1, "E": 0}', "About C: a name that doesn't exist"),
        ('printed = {"A": 2, "B": 0, "C": 2, "D": 0, "E": 0}', "About D: `import` is a statement"),
        ('printed = {"A": 2, "B": 0, "C": 2, "D": 1, "E": 1}', "4 of 5 are right. About E: the branch would never"),
        ('printed = {"A": 3, "B": 0, "C": 2, "D": 1, "E": 0}', "About A: run it"),
        ('printed = {"A": 2, "B": 0}', "nothing yet about C, D, E"),
        ('printed = {"A": "two", "B": 0, "C": 2, "D": 1, "E": 0}', "without quotes"),
        ("printed = [2, 0, 2]", "must be a dictionary"),
    ],
    "01.4": [
        (TABLE + "pairs_by_row = table", "tables of n × n numbers"),
        (PURE, "3.0 times"),
        (ROWS_BY.replace("INSIDE", CLOSE.replace("[:i]", "")), "counted twice, and each point with itself"),
        (ROWS_BY.replace("INSIDE", CLOSE.replace("[:i]", "[:i + 1]")), "as a pair with itself"),
        (ROWS_BY.replace("INSIDE", "abs(x[i] - x[:i]) < r"), "only the first coordinate"),
        (ROWS_BY.replace("INSIDE", CLOSE.replace("<", ">")), "lie further apart"),
        (ROWS_BY.replace("INSIDE", CLOSE).replace("len(x)", "1000"), "IndexError"),
        (ROWS_BY.replace("INSIDE", CLOSE).replace("return count", "print(count)"), "must be a number, not None"),
    ],
    "01.5": [
        ("def smooth(x, a):\n    " + LOOP, "the given version"),
        ("from itertools import accumulate\ndef smooth(x, a):\n"
         "    return np.array(list(accumulate(x.tolist(), lambda y, v: a * v + (1 - a) * y)))", "the given version"),
        ("def smooth(x, a):\n    y = x.copy()\n    y[1:] = a * x[1:] + (1 - a) * y[:-1]\n    return y", "*raw* value"),
        (SMOOTH + "y = np.empty_like(x)\n    last = 0.0\n    for i in range(len(x)):\n"
                  "        last = a * x[i] + (1 - a) * last\n        y[i] = last\n    return y", "it starts from 0"),
        (SMOOTH + LOOP.replace("a * x[i] + (1 - a) * y", "(1 - a) * x[i] + a * y"), "belongs to the new value"),
        (SMOOTH + LOOP.replace("np.empty_like(x)", "x"), "in place"),
        (SMOOTH + LOOP.replace("empty_like(x)", "empty(len(x), np.float32)"), "dtype float32"),
        ("import numba\ndef smooth(x, a):\n    @numba.njit\n    def run(x, a):\n        "
         + LOOP.replace("\n", "\n    ") + "\n    return run(x, a)", "recompiles"),
        (SMOOTH + LOOP + ".tolist()", "raised"),
    ],
    "01.6": [
        (DECLARE + "return library.hypot", "declare `argtypes` too"),
        (DECLARE + "library.hypot.restype = ctypes.c_double\n    return library.hypot", "declare `argtypes` too"),
        (DECLARE + "library.hypot.argtypes = [ctypes.c_double] * 2\n    return library.hypot", "without `restype`"),
        (DECLARE + "library.hypot.argtypes = [ctypes.c_double] * 2\n    library.hypot.restype = ctypes.c_float\n"
                   "    return library.hypot", "its bits were taken for another type"),
        (DECLARE + "library.hypot.argtypes, library.hypot.restype = [ctypes.c_float] * 2, ctypes.c_float\n"
                   "    return library.hypot", "its bits were taken for another type"),
        (DECLARE + "return math.hypot", "never asks `library`"),
        (DECLARE + "library.hypot.argtypes, library.hypot.restype = [ctypes.c_double] * 2, ctypes.c_double",
         "it returned None"),
        (DECLARE + "hypot = library.hypot\n    hypot.argtypes, hypot.restype = [ctypes.c_double], ctypes.c_double\n"
                   "    return hypot", "one type for each argument"),
        (DECLARE + "return library.hypotenuse", "AttributeError"),
    ],
}

RIGHT = {
    "01.1": ["lookups = 2000", "lookups = 2e3"],
    "01.2": [
        WEIGHT + "total, seen = sys.getsizeof(values), set()\n    for value in values:\n"
                 "        if id(value) not in seen:\n            seen.add(id(value))\n"
                 "            total += sys.getsizeof(value)\n    return total",
        WEIGHT + "return sys.getsizeof(values) + len({id(value) for value in values}) * sys.getsizeof(0.5)",
        WEIGHT + "return values.__sizeof__() + sys.getsizeof([]) - [].__sizeof__() + \\\n"
                 "        len(set(map(id, values))) * (1.5).__sizeof__()",
    ],
    "01.3": ["printed = [2, 0, 2, 1, 0]", 'printed = dict(a=2, b=0, c=2, d=True + 0, e=0.0)'],
    "01.4": [
        SWEEP,
        BLOCKS,
        TABLE + "fast = jax.jit(table)\n" + ROWS + "return fast(x, y, r)",
        "from scipy.spatial import cKDTree\n" + ROWS + "points = cKDTree(np.stack([x, y], axis=1))\n"
        "    return (points.count_neighbors(points, float(r)) - len(x)) // 2",
    ],
    "01.5": [
        "from scipy.signal import lfilter\ndef smooth(x, a):\n"
        "    return lfilter([a], [1, a - 1], x, zi=[(1 - a) * x[0]])[0]",
        'import numba\n@numba.jit("float64[::1](float64[::1], float64)", nopython=True)\ndef smooth(x, a):\n'
        "    y, last = np.empty(len(x)), x[0]\n    for i, value in enumerate(x):\n"
        "        last += a * (value - last)\n        y[i] = last\n    return y",
    ],
    "01.6": [
        DECLARE + "kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)\n"
                  '    return kind(("hypot", library))',
        DECLARE + "library.hypot.restype = ctypes.c_double\n"
                  "    return lambda x, y: library.hypot(ctypes.c_double(x), ctypes.c_double(y))",
        DECLARE + 'f = library["hypot"]\n    f.argtypes, f.restype = (ctypes.c_double,) * 2, ctypes.c_double\n'
                  "    return f",
    ],
}
