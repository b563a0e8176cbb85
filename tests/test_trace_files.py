"""Recorder and numbers of `tools.trace_files`, on a source of two files; the program itself takes too long here."""

import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType

from tools.trace_files import Trace
from tools.traced_program import Recorder

SOURCE = """
class Late:
    def called(self): ...

def first(): ...

def second():
    return [each for each in (1, 2)]
"""


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_functions_of_the_source_are_recorded_in_every_thread_but_not_what_an_import_runs(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(SOURCE)
    (tmp_path / "two.py").write_text(SOURCE)
    recorder, one = Recorder(str(tmp_path)), load(tmp_path / "one.py")
    before = sys.getprofile()
    threading.setprofile(recorder.note)
    sys.setprofile(recorder.note)
    try:
        one.Late().called()
        recorder.start()
        two = load(tmp_path / "two.py")
        one.first()
        thread = threading.Thread(target=two.first)
        thread.start()
        thread.join()
        found = recorder.stop()
        one.second()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    assert found == [("one.py", "first:5"), ("two.py", "first:5")]
    assert recorder.stop() == found


def test_a_file_is_a_requests_own_if_a_function_of_it_did_not_run_in_the_idle_time() -> None:
    trace = Trace(
        ran=frozenset({("clock.py", "now:1"), ("queue.py", "get:1"), ("queue.py", "put:2"), ("api.py", "create:1")}),
        idle=frozenset({("clock.py", "now:1"), ("queue.py", "get:1"), ("monitor.py", "sweep:1")}),
    )
    assert trace.files == {"clock.py", "queue.py", "api.py"}
    assert trace.idle_files == {"clock.py", "queue.py"}
    assert trace.own_files == {"queue.py", "api.py"}
