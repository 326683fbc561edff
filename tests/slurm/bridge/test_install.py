"""`unisono slurm install`: what it writes, what it refuses, what it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from unisono.cli.main import main

CONF = "ClusterName=c\nSlurmUser=root\nNodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL\n"


def install(conf: Path, *flags: str) -> int:
    """Run the command."""
    socket = str(conf.parent / "b.sock")
    return main(["slurm", "install", "--conf", str(conf), "--socket", socket, *flags])


def test_installs_what_the_check_expects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(CONF)
    assert install(conf, "--check") == 1
    assert "missing   JobSubmitPlugins=lua" in capsys.readouterr().out
    assert install(conf) == 0
    once = conf.read_text()
    assert install(conf) == 0
    assert conf.read_text() == once
    assert once.count("Include") == 1
    capsys.readouterr()
    assert install(conf, "--check") == 0
    assert "missing" not in capsys.readouterr().out
    hook = tmp_path / "unisono" / "hook"
    assert hook.stat().st_mode & 0o777 == 0o755
    assert str(tmp_path / "b.sock") in hook.read_text()


def test_a_check_on_the_nodes_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(CONF)
    assert install(conf, "--in", "prolog") == 1
    assert "drains a healthy node" in capsys.readouterr().err
    prolog = tmp_path / "prolog.sh"
    prolog.write_text("#!/bin/sh\nkubectl get nodes || exit 1\n")
    conf.write_text(f"{CONF}Prolog={prolog}\n")
    assert install(conf) == 1
    assert "calls kubectl" in capsys.readouterr().err
    assert not (tmp_path / "unisono").exists()
    prolog.write_text("#!/bin/sh\nmkdir -p /scratch/$SLURM_JOB_ID\n")
    assert install(conf) == 0


def test_settings_of_others_are_not_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "slurm.conf"
    theirs = tmp_path / "theirs.sh"
    theirs.write_text("#!/bin/sh\nexit 0\n")
    conf.write_text(f"{CONF}JobSubmitPlugins=throttle\nPrologSlurmctld={theirs}\n")
    assert install(conf) == 1
    told = capsys.readouterr().err
    assert "write JobSubmitPlugins=throttle,lua" in told
    assert f"call {tmp_path / 'unisono' / 'hook'} there" in told
    theirs.write_text(f"#!/bin/sh\nexec {tmp_path / 'unisono' / 'hook'}\n")
    conf.write_text(f"{CONF}JobSubmitPlugins=throttle,lua\nPrologSlurmctld={theirs}\n")
    assert install(conf) == 0


def test_the_site_s_own_script_is_kept_and_called_first(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(CONF)
    (tmp_path / "job_submit.lua").write_text("-- ours for years\n")
    assert install(conf) == 0
    assert (tmp_path / "job_submit.site.lua").read_text() == "-- ours for years\n"
    assert (
        f'SITE = "{tmp_path / "job_submit.site.lua"}"' in (tmp_path / "job_submit.lua").read_text()
    )
    assert install(conf, "--check") == 0


def test_a_hook_that_may_hang_for_ever_is_not_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"{CONF}PrologEpilogTimeout=65534\n")
    assert install(conf) == 1
    assert "at most 120" in capsys.readouterr().err


def test_stage_in_has_its_own_script(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(CONF)
    assert install(conf, "--mode", "stage") == 0
    assert "stage %d" in (tmp_path / "burst_buffer.lua").read_text()
    assert install(conf, "--mode", "stage", "--check") == 0
    assert install(conf, "--mode", "gate", "--check") == 1  # the script is for another mode
