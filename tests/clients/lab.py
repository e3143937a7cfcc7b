"""JupyterLab as learners have it: the server that `make lab` starts, and a real browser that works in it."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

import pages

HERE = Path(__file__).resolve().parent
SCREENSHOTS = pages.ROOT / "build" / "screenshots"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 240.0  # seconds that one cell may take on the slowest machine: the tests of the pages allow half of it
# These tests may themselves run under a make with arguments: leave those behind.
OUTER = ("MAKE", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "LAB_ARGS", "TEST_ARGS", "RUN_ARGS", "PYTHON")


class LabError(AssertionError):
    """JupyterLab or a page in it did not do what a learner relies on."""


def eventually(what, condition, timeout=60.0):
    """The first true result of condition(), asked again and again; LabError when it stays false for too long."""
    deadline = time.monotonic() + timeout
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise LabError(f"{what} within {timeout:.0f} s.")
        time.sleep(0.05)
    return result


# ---------------------------------------------------------------------------------------------------------------------
# The server


def make_lab_words(*options):
    """The words of the command that `make lab` runs, with this Python's JupyterLab in place of .venv's."""
    environment = {name: value for name, value in os.environ.items() if name not in OUTER}
    said = subprocess.run(["make", "--no-print-directory", "-n", "lab", f"LAB_ARGS={shlex.join(options)}"],
                          cwd=pages.ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    return with_this_python(shlex.split(said.splitlines()[-1]))


def with_this_python(words):
    """`jupyter lab …` from any environment → the same of the environment that the tests run in."""
    if Path(words[0]).stem != "jupyter" or words[1] != "lab":
        raise LabError(f"{shlex.join(words)} does not start JupyterLab.")
    return [sys.executable, "-m", "jupyterlab", *words[2:]]


def free_port():
    """A port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url, data=None, **headers):
    """Status and body of a request; with data it is a POST."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


class Server:
    """A running JupyterLab with settings of its own, in a folder that holds copies of the notebooks.

    Attributes: `url` and `token` as the server tells them, `folder` (its root), `guard_log` (what its Python processes
    tried to reach beyond this machine).
    """

    def __init__(self, folder, words):
        self.folder, self.process = Path(folder), None
        self.guard_log = self.folder.parent / "guard.log"
        self.log = self.folder.parent / "lab.log"
        self._private = self.folder.parent / "private"
        self._words = words

    def environment(self):
        """The learner's variables, but settings, data and progress of its own, small measurements and the guard."""
        private = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_RUNTIME_DIR": "runtime", "JUPYTER_DATA_DIR": "data",
                   "IPYTHONDIR": "ipython", "TUTORIAL_HELPERS_DATA": "progress"}
        return {**os.environ, **{name: str(self._private / folder) for name, folder in private.items()},
                "TUTORIAL_HELPERS_SIZE": "quick", "TUTORIAL_GUARD_LOG": str(self.guard_log),
                "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE / "guard"), os.environ.get("PYTHONPATH")]))}

    def start(self):
        """Start it and wait until it answers; returns itself. Raises LabError with the log when it does not."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.guard_log.touch()
        with self.log.open("w") as out:
            self.process = subprocess.Popen(self._words, cwd=self.folder, env=self.environment(), stdout=out,
                                            stderr=subprocess.STDOUT)
        told = self._private / "runtime" / f"jpserver-{self.process.pid}.json"
        try:
            eventually("JupyterLab did not start", lambda: told.exists() or self.process.poll() is not None)
            if self.process.poll() is not None:
                raise LabError("JupyterLab ended at once.")
            info = eventually("JupyterLab did not say where it is", lambda: _json(told))
            self.url, self.token = info["url"], info["token"]
            eventually("JupyterLab did not answer", self.answers)
        except LabError as error:
            self.stop()
            raise LabError(f"{error} Its log:\n{self.log.read_text()[-3000:]}") from None
        return self

    def answers(self):
        """Whether it serves who has the token."""
        with suppress(OSError):
            return fetch(f"{self.url}api/status?token={self.token}")[0] == 200

    def stop(self):
        """End it and the kernels that it started."""
        with suppress(psutil.Error):
            mine = psutil.Process(self.process.pid).children(recursive=True)
            self.process.terminate()
            _, left = psutil.wait_procs([psutil.Process(self.process.pid), *mine], timeout=30)
            for process in left:
                process.kill()
        self.process.wait()

    def connections(self):
        """All internet sockets of the server and of everything that it started."""
        found = []
        for process in [(server := psutil.Process(self.process.pid)), *server.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                found += process.net_connections("inet")
        return found

    def beyond(self):
        """A sentence for each socket that listens or leads beyond this machine, and for each refused attempt."""
        loopback = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
        found = [f"a socket at {end.ip}:{end.port} ({each.status})" for each in self.connections()
                 for end in (each.laddr, each.raddr) if end and end.ip not in loopback]
        return found + self.guard_log.read_text().splitlines()


def _json(path):
    with suppress(OSError, ValueError):
        return json.loads(path.read_text())


# ---------------------------------------------------------------------------------------------------------------------
# The browser


def browser_missing():
    """None where a browser can be driven here, else one sentence: what is missing and how to get it."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "The browser tests need playwright: pip install playwright."
    if not (browser_path() or own_browser()):
        return "The browser tests need Chromium: sudo apt-get install chromium, or playwright install chromium."
    return None


def browser_path():
    """An installed Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def own_browser():
    """Whether playwright has downloaded a Chromium of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        return Path(tools.chromium.executable_path).exists()


@contextmanager
def browser(server):
    """A browser that can reach nothing but `server`: call it with a notebook's path to get its Tab."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        chromium = tools.chromium.launch(
            executable_path=browser_path(), args=["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"])
        context = chromium.new_context(viewport={"width": 1280, "height": 1100}, service_workers="block")
        context.set_default_timeout(60_000)
        context.add_init_script(SCRIPT)
        context.route(re.compile(f"^(?!{re.escape(server.url)}|data:|blob:)"), lambda route: route.abort())
        try:
            yield lambda name: Tab(context.new_page(), server, name)
        finally:
            chromium.close()


# Asked of JupyterLab itself rather than of the page, which may leave out cells that are out of sight.
SCRIPT = """
window.tutorial = {
  panel: () => window.jupyterapp?.shell?.currentWidget,
  cell: index => tutorial.panel().content.widgets[index],
  idle: () => tutorial.panel()?.sessionContext?.session?.kernel?.status === 'idle',
  watch() {
    tutorial.started = [];
    tutorial.panel().sessionContext.iopubMessage.connect((_, message) => {
      if (message.header.msg_type === 'execute_input') tutorial.started.push(message.content.execution_count);
    });
  },
  async show(index) {
    const content = tutorial.panel().content;
    content.activeCellIndex = index;
    await content.scrollToItem(index, 'start');
    const node = tutorial.cell(index).node;
    document.querySelectorAll('.jp-Cell[data-index]').forEach(other => delete other.dataset.index);
    node.dataset.index = index;
    node.scrollIntoView();
  },
  outputs: cell => cell.model.outputs.toJSON().map(output => ({
    type: output.output_type, name: output.name ?? '', error: [output.ename, output.evalue].join(': '),
    text: [output.text ?? output.data?.['text/plain'] ?? ''].flat().join(''),
    kinds: Object.keys(output.data ?? {}).sort()})),
  sources: () => tutorial.panel().content.widgets.map(cell =>
    [cell.model.type === 'code', cell.model.sharedModel.getSource()]),
  cells: () => tutorial.panel().content.widgets.map(cell => ({
    source: cell.model.sharedModel.getSource(), number: cell.model.executionCount ?? null,
    outputs: cell.model.type === 'code' ? tutorial.outputs(cell) : []})),
  progress: () => ({started: tutorial.started.length, idle: tutorial.idle(),
    numbers: tutorial.panel().content.widgets.filter(cell => cell.model.type === 'code')
      .map(cell => cell.model.executionCount ?? null),
    failed: tutorial.panel().content.widgets.some(cell => cell.model.type === 'code'
      && [...Array(cell.model.outputs.length).keys()].some(k => cell.model.outputs.get(k).type === 'error'))}),
  pictures: index => [...tutorial.cell(index).node.querySelectorAll('.jp-OutputArea-output img')],
  look: index => ({
    pictures: tutorial.pictures(index).map(image => image.src).join(' '),
    texts: [...tutorial.cell(index).node.querySelectorAll('.widget-readout, .mod-active')]
      .map(text => text.textContent).join(' ')}),
  follows(index, before) {
    const now = tutorial.look(index);
    return now.pictures !== before.pictures && now.texts !== before.texts && tutorial.idle()
      && tutorial.pictures(index).every(image => image.naturalWidth > 0 && image.alt.trim());
  },
};
"""


class Tab:
    """One notebook in one tab of the browser.

    Attributes: `complaints` (errors of console and page), `foreign` (requests to any other address than the server's),
    `patience` (seconds that one cell may take).
    """

    def __init__(self, page, server, name):
        self.page, self.server, self.name = page, server, name
        self.complaints, self.foreign, self.patience = [], [], PATIENCE
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        page.on("request", lambda request: self._asked(request.url))
        page.on("websocket", lambda stream: self._asked(stream.url))

    def _own(self, url):
        return re.sub("^ws", "http", url).startswith(self.server.url) or url.startswith(("data:", "blob:", "about:"))

    def _asked(self, url):
        if not self._own(url) and url not in self.foreign:
            self.foreign.append(url)

    def _heard(self, message):
        where = message.location.get("url", "")
        if message.type == "error" and (not where or self._own(where)):  # the others are told of as `foreign`
            self.complaints.append(f"{message.text[:500]} ({where[:200]})")

    # -- opening, saving and closing

    @property
    def path(self):
        """The notebook's file."""
        return self.server.folder / "notebooks" / f"{self.name}.ipynb"

    def open(self):
        """Open the notebook by its address, and wait for its kernel; returns itself."""
        address = f"{self.server.url}lab/workspaces/{self.name}/tree/notebooks/{self.name}.ipynb"
        self.page.goto(f"{address}?reset&token={self.server.token}")
        return self._opened()

    def reopen(self):
        """Open it again from the list of files, by mouse."""
        self.page.locator(".jp-DirListing-item").get_by_text(f"{self.name}.ipynb").dblclick()
        return self._opened()

    def _opened(self):
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.wait(f"The kernel of {self.name} did not start", "tutorial.idle()")
        self.page.evaluate("tutorial.watch()")
        return self

    def menu(self, *labels):
        """Choose an entry of the menu bar, such as menu("Run", "Run All Cells")."""
        self.page.locator(".lm-MenuBar-itemLabel").get_by_text(labels[0], exact=True).click()
        for label in labels[1:]:
            self.page.locator(".lm-Menu-itemLabel").get_by_text(label, exact=True).click()

    def save(self):
        """Save by keyboard and wait until the file holds what is shown."""
        before = self.path.stat().st_mtime_ns
        self.page.keyboard.press("Control+s")
        self.wait(f"{self.name} was not saved", "!tutorial.panel().context.model.dirty")
        eventually(f"The file of {self.name} did not change", lambda: self.path.stat().st_mtime_ns > before)

    def shut(self):
        """Close the notebook and end its kernel, as the File menu does it."""
        self.page.locator(".lm-MenuBar-itemLabel").get_by_text("File", exact=True).click()
        self.page.locator(".lm-Menu-itemLabel").get_by_text(re.compile("^Close and Shut ?Down")).click()
        self.page.locator(".jp-Dialog .jp-mod-accept").click()
        self.page.wait_for_selector(".jp-NotebookPanel", state="detached")
        eventually(f"The kernel of {self.name} goes on", lambda: self.name not in self.sessions())

    def sessions(self):
        """The notebooks that have a kernel → the session's id."""
        body = fetch(f"{self.server.url}api/sessions?token={self.server.token}")[1]
        return {Path(session["path"]).stem: session["id"] for session in json.loads(body)}

    def discard(self):
        """Close the tab, and end the kernel that may be left."""
        self.page.close()
        if session := self.sessions().get(self.name):
            url = f"{self.server.url}api/sessions/{session}?token={self.server.token}"
            urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=60).close()

    # -- cells

    def wait(self, what, script, argument=None, timeout=60.0):
        """Wait until the expression is true in the page; LabError when it stays false."""
        from playwright.sync_api import TimeoutError as TooLong

        try:
            self.page.wait_for_function(script, arg=argument, timeout=timeout * 1000, polling=50)
        except TooLong:
            raise LabError(f"{what} within {timeout:.0f} s.") from None

    def cells(self):
        """Every cell as a dict: source, number, outputs (type, name, text, error, kinds)."""
        return self.page.evaluate("tutorial.cells()")

    def progress(self):
        """Dict: started (cells whose run began), idle (the kernel), numbers of the code cells, failed (bool)."""
        return self.page.evaluate("tutorial.progress()")

    def find(self, pattern):
        """{index: match} of the code cells whose source matches."""
        cells = self.page.evaluate("tutorial.sources()")
        found = {index: re.search(pattern, source) for index, (code, source) in enumerate(cells) if code}
        return {index: match for index, match in found.items() if match}

    def source(self, index):
        """A cell's source."""
        return self.page.evaluate("index => tutorial.cell(index).model.sharedModel.getSource()", index)

    def called(self, index):
        """A cell as a sentence calls it: its place and its first line."""
        return f"cell {index} of {self.name} ({self.source(index).strip().partition(chr(10))[0][:80]})"

    def cell(self, index):
        """The cell, scrolled into view, as a playwright locator."""
        self.page.evaluate("index => tutorial.show(index)", index)
        return self.page.locator(f'.jp-Cell[data-index="{index}"]')

    def output(self, index):
        """What the cell's output area shows, as text."""
        areas = self.cell(index).locator(".jp-OutputArea")
        return areas.first.inner_text() if areas.count() else ""

    def run(self, index):
        """Run one cell by keyboard, wait until it is done, and return the text that it shows."""
        self.cell(index).locator(".jp-InputArea .cm-content").click()
        self.page.keyboard.press("Control+Enter")
        return self.ran(index)

    def ran(self, index):
        """Wait until the cell that was started last is done, and return the text that it shows."""
        before = self._seen
        self.wait(f"{self.called(index)} did not finish", """([index, before]) => tutorial.started.length > before
            && tutorial.idle() && tutorial.cell(index).model.executionCount === tutorial.started.at(-1)""",
                  [index, before], self.patience)
        self._seen = self.progress()["started"]
        return self.output(index)

    def type(self, index, source):
        """Replace a cell's source, as by hand."""
        editor = self.cell(index).locator(".jp-InputArea .cm-content")
        editor.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)
        if (there := self.source(index)) != source:
            raise LabError(f"{self.called(index)} holds {there!r} after typing {source!r}.")

    def insert_below(self, index):
        """A new code cell below, by keyboard."""
        self._command(index, "b")

    def delete(self, index):
        """Remove a cell, by keyboard."""
        self._command(index, "d", "d")

    def _command(self, index, *keys):
        before = self.page.evaluate("tutorial.sources().length")
        self.cell(index).locator(".jp-InputArea .cm-content").click()
        for key in ("Escape", *keys):
            self.page.keyboard.press(key)
        self.wait(f"{self.name} kept its cells", "count => tutorial.sources().length !== count", before)

    # -- Run All Cells

    def run_all(self):
        """Choose Run All Cells; `poll` says when they are done."""
        self.menu("Run", "Run All Cells")
        self._count = len(self.find(r"\S"))
        self._seen, self._changed = 0, time.monotonic()

    def poll(self):
        """Whether every code cell has run; LabError when one failed, or took longer than `patience`."""
        now = self.progress()
        if now["started"] > self._seen:
            self._seen, self._changed = now["started"], time.monotonic()
        if now["idle"] and now["failed"]:
            raise LabError("; ".join(self.faults()))
        if now["idle"] and now["numbers"] == list(range(1, self._count + 1)) and now["started"] == self._count:
            return True
        if time.monotonic() - self._changed > self.patience:
            cells = self.cells()
            waiting = next(index for index in self.find(r"\S") if cells[index]["number"] is None)
            raise LabError(f"{self.called(waiting)} did not finish within {self.patience:.0f} s.")
        return False

    def faults(self):
        """A sentence for each error and each line on stderr that the cells' outputs hold."""
        found = []
        for index, cell in enumerate(self.cells()):
            for output in cell["outputs"]:
                if output["type"] == "error":
                    found.append(f"{self.called(index)} raised {output['error'][:300]}")
                elif output["name"] == "stderr":
                    found.append(f"{self.called(index)} wrote to stderr: {output['text'][:300]}")
        return found

    # -- figures

    def figures(self, indices=None):
        """Wait until every figure that these cells (or all) store is drawn; {index: the alt texts of its figures}."""
        found, cells = {}, self.cells()
        for index in range(len(cells)) if indices is None else indices:
            stored = sum(kind.startswith("image/") for output in cells[index]["outputs"] for kind in output["kinds"])
            if stored:
                if not self._drawn(index, stored):
                    eventually(f"The figures of {self.called(index)} were not drawn",
                               lambda at=(index, stored): self._brought_into_sight(*at))
                found[index] = self.page.evaluate("index => tutorial.pictures(index).map(each => each.alt)", index)
        return found

    def _drawn(self, index, count):
        return self.page.evaluate("([index, count]) => tutorial.pictures(index).filter(each => each.naturalWidth)"
                                  ".length >= count", [index, count])

    def _brought_into_sight(self, index, count):
        """JupyterLab draws what comes into sight, and drawing what stands above moves it out of sight again."""
        self.cell(index)
        self.page.wait_for_timeout(200)
        return self._drawn(index, count)

    def follows(self, index, move):
        """Call move(), and wait until the cell's figure and the text beside its control have changed."""
        before = self.page.evaluate("index => tutorial.look(index)", index)
        move()
        self.wait(f"Figure and text of {self.called(index)} did not follow its control",
                  "([index, before]) => tutorial.follows(index, before)", [index, before])

    def screenshot(self, what, index=None):
        """Keep a picture of the tab, or of one cell, in build/screenshots."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        shown = self.page if index is None else self.cell(index)
        shown.screenshot(path=SCREENSHOTS / f"{self.name}-{what}.png")


class Runs:
    """Runs notebooks in the browser, `at_once` of them at the same time, in the order in which they are asked for."""

    def __init__(self, open_tab, names, at_once=2, ahead=2):
        self._open, self._waiting = open_tab, list(names)
        self._running, self._done = {}, {}
        self._at_once, self._ahead = at_once, ahead

    def advance(self):
        """Look after the tabs: note which are done, and start the next."""
        for name, tab in list(self._running.items()):
            try:
                if tab.poll():
                    self._done[name] = self._running.pop(name)
            except Exception as error:  # kept for the test that asks for this notebook
                self._failed(name, error)
        while self._waiting and len(self._running) < self._at_once and len(self._done) <= self._ahead:
            self._start(self._waiting.pop(0))

    def _start(self, name):
        try:
            self._running[name] = tab = self._open(name)
            tab.open().run_all()
        except Exception as error:
            self._failed(name, error)

    def _failed(self, name, error):
        self._done[name] = error
        tab = self._running.pop(name)
        tab.screenshot("failed")
        tab.discard()

    def finished(self, name):
        """The Tab of a notebook that has run to its end, for the caller to use and discard; raises what went wrong."""
        while name not in self._done:
            if name not in self._running and name not in self._waiting:
                raise LabError(f"{name} was taken already.")
            if name in self._waiting and not self._running:  # asked for out of order
                self._waiting.remove(name)
                self._start(name)
            self.advance()
            for tab in list(self._running.values())[:1]:
                tab.page.wait_for_timeout(100)  # lets the browser's events in
        result = self._done.pop(name)
        if isinstance(result, Exception):
            raise result
        return result
