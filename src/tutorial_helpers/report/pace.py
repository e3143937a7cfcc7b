"""How far a run is: which notebook, which cell, how long it has taken and is likely to take."""

import sys
import time

# Seconds that a cell is expected to take before anything is known of this machine, at standard size.
TEXT, CODE, MEASURING = 0.005, 0.1, 2.5
_TRUST = 20.0  # seconds of expectation that weigh as much as what was seen so far
_EVERY = 30.0  # seconds between lines where there is no terminal to redraw one on


class Pace:
    """The progress of a run over several notebooks, one line on stderr.

    expected: {page name: seconds for each of its cells}, from an earlier run or from expected_cells(). Where stderr is
    no terminal, a line appears when a notebook starts and every half minute.
    """

    def __init__(self, expected, stream=None, clock=time.monotonic):
        from tqdm import tqdm

        self.expected, self.stream, self.clock = dict(expected), stream or sys.stderr, clock
        self.begun, self.cell_begun, self.spoken = clock(), clock(), -_EVERY
        self.page, self.index, self.finished = None, 0, []
        self.live = self.stream.isatty()
        self.bar = tqdm(total=self._all(), file=self.stream, disable=not self.live, leave=False, dynamic_ncols=True,
                        bar_format="{desc} {bar:12}{postfix}")

    def start(self, name):
        """A notebook starts."""
        self.page, self.index, self.cell_begun, self.spoken = name, 0, self.clock(), -_EVERY
        self.tick()

    def cell(self, index):
        """A cell of it starts."""
        self.index, self.cell_begun = index, self.clock()
        self.tick()

    def done(self):
        """The notebook ended, one way or the other."""
        self.finished.append(self.page)
        self.page = None

    def close(self):
        self.bar.close()

    def tick(self):
        """Show where things are now."""
        if self.page is None:
            return
        if self.live:
            self.bar.n = min(self._all(), self._behind())
            self.bar.set_description_str(self._where(), refresh=False)
            self.bar.set_postfix_str(self._times())
        elif self.clock() - self.spoken >= _EVERY:
            self.spoken = self.clock()
            print(f"{self._where()}, {self._times()}", file=self.stream, flush=True)

    def remaining(self):
        """Seconds that are likely to be left: the cells ahead at the pace seen so far, and the rest of this one."""
        behind, current = self._behind(), self.expected[self.page][self.index:self.index + 1] if self.page else []
        pace = (self.clock() - self.begun + _TRUST) / (behind + _TRUST)
        ahead = self._all() - behind - sum(current)
        return pace * ahead + max(0.0, pace * sum(current) - (self.clock() - self.cell_begun))

    def _where(self):
        cells = len(self.expected[self.page])
        return (f"{self.page} ({len(self.finished) + 1} of {len(self.expected)}), "
                f"cell {min(self.index + 1, cells)} of {cells}")

    def _times(self):
        return f"{minutes(self.clock() - self.begun)} gone, about {minutes(self.remaining())} left"

    def _all(self):
        return sum(map(sum, self.expected.values()))

    def _behind(self):
        whole = sum(sum(self.expected[name]) for name in self.finished)
        return whole + (sum(self.expected[self.page][:self.index]) if self.page else 0)


def expected_cells(page, size, known=None):
    """Seconds that each cell of a page is expected to take: `known` from an earlier run, else a rule of thumb.

    size: a machine.Size. known: seconds for each cell, used when it is as long as the page.
    """
    if known and len(known) == len(page.cells):
        return list(known)
    measuring = MEASURING * (0.3 + 0.7 * size.time)
    return [TEXT if kind is None else measuring if kind else CODE for kind in page.cells]


def minutes(seconds):
    """A duration on a clock face.

    >>> minutes(130)
    '2:10'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
