"""The images: what can be judged by reading, and, of the broker, by running it where an engine is.

Without a Docker engine the tests that need one are not collected: there is nothing they could say.
"""

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import pytest

ROOT = Path(__file__).resolve().parents[2]
TAG = "ibrik/broker:test"
DOCKERFILES = ("Dockerfile.broker", "Dockerfile.operator", "Dockerfile.spark")
BUILD_TIMEOUT_S = 600
RUN_TIMEOUT_S = 60


def instructions(dockerfile: str = "Dockerfile.broker") -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, continued lines joined."""
    text = (ROOT / dockerfile).read_text().replace("\\\n", " ")
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return [(name, " ".join(rest.split())) for name, _, rest in pairs]


def of(name: str, dockerfile: str = "Dockerfile.broker") -> list[str]:
    return [rest for instruction, rest in instructions(dockerfile) if instruction == name]


def test_the_image_runs_one_process_as_a_numbered_user() -> None:
    assert of("USER") == ["65532:65532"]
    assert of("ENTRYPOINT") == ['["ibrik", "serve"]']
    assert of("STOPSIGNAL") == ["SIGTERM"]
    assert of("HEALTHCHECK") == ["NONE"]
    assert of("VOLUME") == ["/var/lib/ibrik"]


def test_the_operator_is_one_process_of_the_same_user() -> None:
    assert of("USER", "Dockerfile.operator") == ["65532:65532"]
    assert of("ENTRYPOINT", "Dockerfile.operator") == ['["python", "-m", "ibrik_operator"]']
    assert of("STOPSIGNAL", "Dockerfile.operator") == ["SIGTERM"]
    assert of("VOLUME", "Dockerfile.operator") == []


def test_a_job_is_of_the_same_user_as_the_broker_whose_volume_it_reads() -> None:
    assert of("USER", "Dockerfile.spark") == of("USER")
    assert of("ENTRYPOINT", "Dockerfile.spark") == ['["ibrik-spark"]']


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_the_classic_builder_understands_every_instruction(dockerfile: str) -> None:
    text = "\n".join(f"{name} {rest}" for name, rest in instructions(dockerfile))
    for newer in ("--mount", "--chmod", "--link", "<<", "# syntax"):
        assert newer not in text


@pytest.mark.parametrize("dockerfile", DOCKERFILES)
def test_every_package_is_installed_by_its_hash_or_from_this_repository(dockerfile: str) -> None:
    installs = [
        part for run in of("RUN", dockerfile) for part in run.split("&&") if "pip install" in part
    ]
    for install in installs:
        assert "--require-hashes" in install or "--no-deps" in install


def test_no_file_names_a_registry_or_an_index() -> None:
    locks = [f"requirements/{name}.lock" for name in ("broker", "build", "operator", "spark")]
    for name in (*DOCKERFILES, *locks):
        text = (ROOT / name).read_text()
        for word in ("://", "index-url", "find-links", "trusted-host"):
            assert word not in text, f"{name}: {word}"


def test_the_image_gets_only_what_it_is_built_from() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert "*" in ignored
    copied = {
        source
        for dockerfile in DOCKERFILES
        for copy in of("COPY", dockerfile)
        if "--from" not in copy
        for source in copy.split()[:-1]
    }
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def engine_answers() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(("docker", "info"), capture_output=True, check=False).returncode == 0


def docker(*arguments: str, timeout_s: float = RUN_TIMEOUT_S) -> str:
    ended = subprocess.run(
        ("docker", *arguments), capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@contextmanager
def running_container(*options: str) -> Iterator[str]:
    """A container of the image under the restrictions of a restricted pod; removed at the end."""
    container = docker(
        "run", "--detach", "--read-only", "--user", "65532:65532", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--publish", "127.0.0.1::8080", *options, TAG,
    )  # fmt: skip
    try:
        first_line(container)
        yield container
    finally:
        docker("rm", "--force", "--volumes", container)


def first_line(container: str) -> str:
    """Wait for the banner: `docker logs --follow` gives lines as they come."""
    with subprocess.Popen(
        ("docker", "logs", "--follow", container), stdout=subprocess.PIPE, text=True
    ) as logs:
        assert logs.stdout is not None
        line = logs.stdout.readline()
        logs.kill()
    assert line.startswith("ibrik "), docker("logs", container)
    return line


def post(container: str, path: str, body: bytes, **headers: str) -> dict[str, object]:
    address = docker("port", container, "8080/tcp").splitlines()[0]
    request = urllib.request.Request(
        f"http://{address}{path}", data=body, headers=headers, method="POST"
    )
    with urllib.request.urlopen(request, timeout=RUN_TIMEOUT_S) as answer:
        document = json.load(answer)
    assert isinstance(document, dict)
    return document


TOPIC = json.dumps(
    {"apiVersion": "ibrik.dev/v1beta1", "kind": "Topic", "metadata": {"name": "orders"}, "spec": {}}
).encode()

if engine_answers():

    @pytest.fixture(scope="module")
    def image() -> str:
        docker(
            "build", "--quiet", "--tag", TAG, "--file", str(ROOT / "Dockerfile.broker"), str(ROOT),
            timeout_s=BUILD_TIMEOUT_S,
        )  # fmt: skip
        return TAG

    @pytest.mark.slow
    @pytest.mark.timeout(BUILD_TIMEOUT_S)
    @pytest.mark.usefixtures("image")
    def test_the_image_publishes_over_http_drains_and_keeps_its_volume() -> None:
        volume = docker("volume", "create")
        mount = ("--volume", f"{volume}:/var/lib/ibrik")
        may_register = ("--env", "IBRIK_HTTP__OPEN_REGISTRATION=true")
        try:
            with running_container(*mount, *may_register) as container:
                post(container, "/v1/topics", TOPIC)
                receipt = post(container, "/v1/topics/orders/messages", b"hello")
                assert (receipt["offset"], receipt["durability"]) == (0, "flushed")
                docker("stop", "--time", "30", container)
                assert docker("inspect", "--format", "{{.State.ExitCode}}", container) == "0"
            with running_container(*mount) as container:
                receipt = post(container, "/v1/topics/orders/messages", b"again")
                assert receipt["offset"] == 1
                with pytest.raises(HTTPError, match="401"):
                    post(container, "/v1/topics", TOPIC)
        finally:
            docker("volume", "rm", "--force", volume)

    @pytest.mark.slow
    @pytest.mark.timeout(BUILD_TIMEOUT_S)
    @pytest.mark.usefixtures("image")
    def test_an_admin_door_beyond_loopback_without_a_token_is_refused() -> None:
        ended = subprocess.run(
            ("docker", "run", "--rm", "--env", "IBRIK_ADMIN__HOST=0.0.0.0", TAG),
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
        assert ended.returncode != 0
        assert "beyond loopback the admin door needs a token" in ended.stderr

    @pytest.mark.slow
    @pytest.mark.timeout(BUILD_TIMEOUT_S)
    @pytest.mark.usefixtures("image")
    def test_the_broker_is_the_only_process_and_not_root() -> None:
        with running_container() as container:
            users = docker("top", container, "-eo", "pid,uid,args").splitlines()[1:]
            assert len(users) == 1
            assert users[0].split()[1] == "65532"
