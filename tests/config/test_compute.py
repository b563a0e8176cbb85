"""What can be said about compute: what reaches it, and what is refused."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from remuda.compute.settings import ComputeSettings
from remuda.config.loader import Misconfigured, load
from remuda.config.schema import Configuration
from remuda.config.settings import compute_settings

URL = "http://127.0.0.1:8080"


def settings(text: str, tmp_path: Path, environment: dict[str, str] | None = None) -> ComputeSettings:
    path = tmp_path / "remuda.toml"
    path.write_text(text)
    return compute_settings(load(environment or {}, file=path).configuration, url=URL)


def test_without_a_word_compute_is_told_its_own_defaults() -> None:
    assert compute_settings(Configuration(), url=URL) == ComputeSettings()


def test_every_setting_of_compute_but_its_addresses_can_be_configured() -> None:
    settable = {each.name for each in dataclasses.fields(Configuration().compute)}
    assert settable == {each.name for each in dataclasses.fields(ComputeSettings)} - {"url", "identity_url"}


def test_what_is_set_reaches_compute(tmp_path: Path) -> None:
    told = settings('[compute]\nabsence_delay = "7s"\nmonitor_interval = "1m"\nstalled_after = "2h"', tmp_path)
    assert (told.absence_delay, told.monitor_interval, told.stalled_after) == (
        timedelta(seconds=7),
        timedelta(minutes=1),
        timedelta(hours=2),
    )


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    told = settings('[compute]\nmonitor_interval = "1m"', tmp_path, {"REMUDA_COMPUTE__MONITOR_INTERVAL": "90s"})
    assert told.monitor_interval == timedelta(seconds=90)


def test_tokens_come_from_where_identity_says_that_it_is(tmp_path: Path) -> None:
    told = settings('[identity]\nissuer = "https://cloud.example.com/identity"', tmp_path)
    assert (told.url, told.identity_url) == (f"{URL}/compute", "https://cloud.example.com/identity")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('absence_delay = "0s"', "compute.absence_delay in FILE is zero: write a duration of at least 1s."),
        ("monitor_interval = 300", "compute.monitor_interval in FILE is a number where a duration is needed"),
        ('stalled_aftr = "1h"', "compute.stalled_aftr in FILE is not a setting: did you mean compute.stalled_after?"),
    ],
)
def test_what_cannot_be_is_refused_with_what_should_be(line: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured) as refused:
        settings(f"[compute]\n{line}", tmp_path)
    assert why in str(refused.value).replace(str(tmp_path / "remuda.toml"), "FILE")
