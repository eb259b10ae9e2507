"""The container: Dockerfile, install.sh and try.sh do the same, and compose.yaml names what is there and opens nothing."""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml  # type: ignore[import-untyped]

from tests.command_line import ROOT
from tests.conftest import assert_same
from tests.notifications import LONGEST_WAIT_S

FOLDER = ROOT / "examples" / "container"


def text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    lines = [line for line in text("Dockerfile").splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2]) for line in lines]


def services() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = yaml.safe_load(text("compose.yaml"))["services"]
    return found


@pytest.mark.parametrize("name", ["install.sh", "try.sh"])
def test_the_scripts_can_be_parsed(name: str) -> None:
    parsed = subprocess.run(["sh", "-n", name], cwd=FOLDER, capture_output=True, text=True, check=False, timeout=LONGEST_WAIT_S)
    assert (parsed.returncode, parsed.stderr) == (0, "")


def test_the_dockerfile_installs_by_the_script_that_is_tried_without_docker() -> None:
    ran = [what for name, what in instructions() if name == "RUN"]
    assert ran == ["sh /build/install.sh && rm -r /build"]
    assert "sh /build/install.sh" in text("try.sh")


def test_user_folder_and_path_are_the_same_everywhere() -> None:
    last = dict(instructions())
    user, group = last["USER"].split(":")
    assert user == group != "0"
    assert f"useradd --uid {user} --user-group" in text("install.sh")
    assert f"setpriv --reuid {user} --regid {group} --clear-groups --no-new-privs" in text("try.sh")
    assert last["VOLUME"] == last["WORKDIR"]
    for name in ("install.sh", "try.sh"):
        assert last["VOLUME"] in text(name)
    path = re.search(r"PATH=(\S+):\$PATH", last["ENV"])
    assert path is not None
    assert f"PATH={path[1]}:" in text("try.sh")


def test_docker_gets_what_is_copied_and_nothing_else() -> None:
    *sources, _ = dict(instructions())["COPY"].split()
    everything, *exceptions = text("Dockerfile.dockerignore").split()
    assert everything == "*"
    assert_same(exceptions, [f"!{source}" for source in sources])


def test_requirements_are_installed_by_their_hashes() -> None:
    installs = [line for line in text("install.sh").splitlines() if line.startswith("pip install")]
    assert installs == [
        "pip install --require-hashes --only-binary :all: -r requirements.txt",
        "pip install --no-deps ./crawlspace-*.whl",
    ]


def test_files_that_are_mounted_are_there() -> None:
    mounted = [volume.split(":")[0] for service in services().values() for volume in service.get("volumes", ())]
    files = [name for name in mounted if name.startswith(".")]
    assert len(files) == 5
    assert [name for name in files if not (FOLDER / name).is_file()] == []
    assert_same({*mounted} - {*files}, [*yaml.safe_load(text("compose.yaml"))["volumes"]])


def test_no_service_is_open_or_privileged() -> None:
    ports = [port for service in services().values() for port in service.get("ports", ())]
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []
    unbound = [name for name, service in services().items() if service["security_opt"] != ["no-new-privileges:true"]]
    assert unbound == []
    assert [name for name, service in services().items() if not service.get("read_only")] == ["opensearch"]


def test_the_default_needs_the_crawler_alone() -> None:
    assert [name for name, service in services().items() if "profiles" not in service] == ["crawler"]
    profiles = {profile for service in services().values() for profile in service.get("profiles", ())}
    documented = (ROOT / "docs" / "container.md").read_text(encoding="utf-8")
    assert {profile for profile in profiles if f"--profile {profile}" not in documented} == set()


def test_prometheus_scrapes_what_the_other_example_does() -> None:
    other = yaml.safe_load((ROOT / "examples" / "monitoring" / "prometheus.yml").read_text(encoding="utf-8"))
    own = yaml.safe_load(text("prometheus.yml"))
    assert own["rule_files"] == other["rule_files"]
    names = [[job["job_name"] for job in one["scrape_configs"]] for one in (own, other)]
    assert names[0] == names[1]
    targets = {target for job in own["scrape_configs"] for config in job["static_configs"] for target in config["targets"]}
    assert targets == {"crawler:8960", "crawler:8970"}
