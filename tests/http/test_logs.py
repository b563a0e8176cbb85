import json
import subprocess
import sys

SCRIPT = """
import logging, structlog
from remuda.process import log_to

class Out:
    def write(self, line):
        print(line.decode())

log_to(Out())
structlog.contextvars.bind_contextvars(reconcile_id="7")
structlog.get_logger().info("ours", number=1, odd=object)
logging.getLogger("library").warning("theirs %d", 2)
logging.getLogger("library").info("too quiet")
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger().exception("went wrong")
"""


def test_everybodys_log_is_one_json_object_a_line() -> None:
    told = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    ours, theirs, wrong = map(json.loads, told.stdout.splitlines())
    assert (ours["event"], ours["level"], ours["number"], ours["odd"]) == ("ours", "info", 1, "<class 'object'>")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("theirs 2", "warning", "library")
    assert wrong["event"] == "went wrong"
    assert "ZeroDivisionError" in wrong["exception"]
    assert all(line["reconcile_id"] == "7" for line in (ours, theirs, wrong))
    assert all(line["time"].endswith("Z") for line in (ours, theirs, wrong))
    assert told.stderr == ""
