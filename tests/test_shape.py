"""Shape of a small checkout, measured by `tools.shape`: each row counts what its title says."""

from pathlib import Path

from tools.shape import measures

SOURCES = {
    "src/remuda/__init__.py": '"""Remuda."""\n',
    "src/remuda/region/app.py": '"""What wires it."""\nclass Monitor: ...\nclass Entry: ...\n',
    "src/remuda/region/settling.py": "from remuda.region import unsettled\n",
    "src/remuda/region/unsettled.py": "import remuda.region.settling\ndef is_late(self) -> bool:\n    self.a = 1\n",
    "src/remuda/region/binding.py": "def late() -> None:\n    import remuda.region.app\n" + "\n" * 60,
    "src/remuda/compute/monitor.py": "class Monitor: ...\n",
    "src/remuda/store/logs.py": "class Entry: ...\n",
    "tests/test_a.py": "def test_b():\n    async def scenario(): ...\n    launch(scenario)\n",
    "docs/reference/a.md": "",
    "docs/b.md": "",
    "docs/index.md": "",
}
ROWS = {
    "source_files": 7,
    "source_lines": 72,
    "lines_per_file": "1 / 62 / 62",
    "small_files": 5,
    "gerund_modules": 1,
    "homonyms": 1,
    "sibling_names": 1,
    "mutating_predicates": 1,
    "opening_questions": 1,
    "files_in_cycles": 2,
    "wiring_modules": 1,
    "test_files": 1,
    "test_lines": 3,
    "scenario_closures": 1,
    "scenario_launchers": 1,
    "pages": "1 of 2",
}


def test_each_row_counts_what_its_title_says(tmp_path: Path) -> None:
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert {row.key: row.value for row in measures(tmp_path)} == ROWS
