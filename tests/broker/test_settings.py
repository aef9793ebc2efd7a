"""Settings: priorities, units, unknown names, and what is refused beyond loopback."""

import json
import os
from pathlib import Path

import pytest

from ibrik_broker.settings import SettingsError, load_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("IBRIK_")]:
        monkeypatch.delenv(name)


def refusal(flags: dict[str, object] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(flags)
    return str(caught.value)


def test_the_defaults_are_bound_to_loopback() -> None:
    settings = load_settings()
    listeners = [settings.http, settings.tcp, settings.admin]
    assert [(each.host, each.port) for each in listeners] == [
        ("127.0.0.1", 8080),
        ("127.0.0.1", 7070),
        ("127.0.0.1", 8081),
    ]
    assert settings.metadata_url.endswith("/data/metadata.db")


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ibrik.yaml"
    file.write_text("tcp: {port: 1, host: 127.0.0.2}\nhttp: {port: 1}\nadmin: {port: 1}\n")
    monkeypatch.setenv("IBRIK_CONFIG", str(file))
    monkeypatch.setenv("IBRIK_TCP__PORT", "2")
    monkeypatch.setenv("IBRIK_HTTP__PORT", "2")
    settings = load_settings({"tcp.port": 3})
    assert (settings.tcp.port, settings.http.port, settings.admin.port) == (3, 2, 1)
    assert settings.tcp.host == "127.0.0.2"


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("json", json.dumps({"data": "/x", "log": {"segment_bytes": "64Mi"}})),
        ("yaml", "data: /x\nlog:\n  segment_bytes: 64Mi\n"),
        ("yml", "data: /x\nlog:\n  segment_bytes: 67108864\n"),
        ("toml", 'data = "/x"\n[log]\nsegment_bytes = "64Mi"\n'),
    ],
)
def test_a_file_is_json_yaml_or_toml_by_its_ending(tmp_path: Path, ending: str, text: str) -> None:
    file = tmp_path / f"config.{ending}"
    file.write_text(text)
    settings = load_settings({"config": file})
    assert (settings.data, settings.log.segment_bytes) == (Path("/x"), 64 * 2**20)


def test_the_example_file_of_a_tcp_broker_works() -> None:
    root = Path(__file__).resolve().parents[2]
    settings = load_settings({"config": root / "examples/tcp/config.yaml"})
    assert (settings.tcp.host, settings.tcp.port) == ("127.0.0.1", 7070)
    assert settings.log.segment_bytes == 64 * 2**20


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("# nothing yet\n")
    assert load_settings({"config": file}).tcp.port == 7070


@pytest.mark.parametrize(
    ("written", "drain_ms"), [("30s", 30_000), ("2m", 120_000), ("250ms", 250), (5, 5)]
)
def test_times_are_written_with_a_unit_or_in_milliseconds(written: object, drain_ms: int) -> None:
    assert load_settings({"shutdown": {"drain_ms": written}}).shutdown.drain_ms == drain_ms


def test_an_unknown_variable_stops_the_start_with_the_nearest_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IBRIK_LOG__SEGMENT_BYTE", "1")
    assert refusal() == (
        "unknown setting IBRIK_LOG__SEGMENT_BYTE (did you mean IBRIK_LOG__SEGMENT_BYTES?)"
    )


def test_an_unknown_top_level_variable_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IBRIK_DTAA", "/x")
    assert refusal() == "unknown setting IBRIK_DTAA (did you mean IBRIK_DATA?)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "log: {segment_byte: 1}",
            "unknown setting log.segment_byte in {file} (did you mean log.segment_bytes?)",
        ),
        (
            "segment_bytes: 1",
            "unknown setting segment_bytes in {file} (did you mean log.segment_bytes?)",
        ),
        ("lgo: {a: 1}", "unknown setting lgo.a in {file}"),
        ("[1, 2]", "{file}: expected names and values at the top, not a list"),
        (
            "tcp: 7070",
            "tcp (IBRIK_TCP): Input should be a valid dictionary or instance of TcpSettings, "
            "not 7070",
        ),
    ],
)
def test_a_wrong_file_stops_the_start_with_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert refusal({"config": file}) == said.format(file=file)


@pytest.mark.parametrize(("name", "text"), [("a.json", "{"), ("a.toml", "= 1"), ("a.yaml", "a: [")])
def test_broken_text_in_a_file_is_named_with_the_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert refusal({"config": tmp_path / name}).startswith(f"{tmp_path / name}: ")


def test_a_missing_file_and_an_unknown_ending_are_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal({"config": tmp_path / "none.yaml"})
    assert "the ending says the format" in refusal({"config": tmp_path / "config.ini"})


def test_an_unknown_flag_is_refused_with_the_nearest_name() -> None:
    assert refusal({"dtaa": "/x"}) == "unknown setting dtaa (did you mean data?)"


def test_an_unknown_name_inside_a_group_given_as_json_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IBRIK_TCP", '{"prot": 1}')
    assert refusal() == "unknown setting tcp.prot (did you mean tcp.port?)"


def test_a_wrong_value_names_the_setting_and_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IBRIK_LOG__SEGMENT_BYTES", "1")
    assert refusal() == (
        "log.segment_bytes (IBRIK_LOG__SEGMENT_BYTES): "
        "Input should be greater than or equal to 16384, not '1'"
    )


@pytest.mark.parametrize("door", ["http", "tcp", "admin"])
def test_dev_works_on_loopback_only(door: str) -> None:
    said = refusal({"dev": True, f"{door}.host": "0.0.0.0", "admin.token_file": "/token"})
    assert f"{door}.host is 0.0.0.0" in said


def test_an_admin_door_beyond_loopback_needs_a_token_file() -> None:
    assert "admin.token_file" in refusal({"admin.host": "0.0.0.0"})
    open_door = load_settings({"admin.host": "0.0.0.0", "admin.token_file": "/token"})
    assert not open_door.admin.is_loopback


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("example.org", False), ("10.0.0.1", False)],
)  # fmt: skip
def test_loopback_is_judged_by_the_address(host: str, is_loopback: bool) -> None:
    assert load_settings({"tcp.host": host}).tcp.is_loopback is is_loopback


def test_variables_that_kubernetes_makes_for_services_are_passed_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {
        "IBRIK_SERVICE_HOST": "10.0.0.1",
        "IBRIK_SERVICE_PORT": "8080",
        "IBRIK_SERVICE_PORT_HTTP": "8080",
        "IBRIK_PORT": "tcp://10.0.0.1:8080",
        "IBRIK_PORT_8080_TCP_ADDR": "10.0.0.1",
        "IBRIK_ORDERS_SERVICE_HOST": "10.0.0.1",
        "IBRIK_ORDERS_PORT": "tcp://10.0.0.1:8080",
    }.items():
        monkeypatch.setenv(name, value)
    assert load_settings().tcp.port == 7070


def test_a_port_variable_without_its_group_is_still_a_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IBRIK_TCP_PORT", "7071")
    assert refusal() == "unknown setting IBRIK_TCP_PORT (did you mean IBRIK_TCP__PORT?)"


def test_secrets_of_channels_in_the_environment_are_no_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IBRIK_SECRET_ERP_TOKEN", "hunter2")
    assert load_settings().tcp.port == 7070
    monkeypatch.setenv("IBRIK_SECRETS", "hunter2")
    assert refusal().startswith("unknown setting IBRIK_SECRETS")


def test_rules_of_egress_are_a_list_in_a_file_and_words_with_commas_in_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("egress: {allow: [10.0.0.0/8, '*.shop.svc']}\n")
    assert load_settings({"config": file}).egress.allow == ("10.0.0.0/8", "*.shop.svc")
    monkeypatch.setenv("IBRIK_EGRESS__ALLOW", "10.0.0.0/8, payments.internal:443")
    assert load_settings().egress.allow == ("10.0.0.0/8", "payments.internal:443")


def test_a_wrong_rule_of_egress_stops_the_start_with_a_sentence() -> None:
    said = refusal({"egress": {"allow": ["10.0.0.1/8"]}})
    assert said.startswith(
        "egress.allow (IBRIK_EGRESS__ALLOW): '10.0.0.1/8' is no rule: 10.0.0.1/8 has host bits set"
    )


def test_credentials_lie_in_the_data_folder_unless_named() -> None:
    assert load_settings({"data": "/x"}).credentials_folder == Path("/x/credentials")
    named = load_settings({"credentials.folder": "/run/credentials"})
    assert named.credentials_folder == Path("/run/credentials")


def test_a_password_in_the_metadata_url_is_not_shown() -> None:
    url = "postgresql+asyncpg://ibrik:hunter2@db/ibrik"
    settings = load_settings({"metadata.url": url})
    assert "hunter2" not in repr(settings)
    assert settings.metadata_url == url


def test_settings_never_change_after_the_start() -> None:
    settings = load_settings()
    with pytest.raises(ValueError, match="frozen"):
        settings.tcp.port = 1  # type: ignore[misc]


def test_a_broker_of_a_pool_needs_postgres() -> None:
    said = refusal({"pool.advertise_host": "ibrik-0.ibrik"})
    assert said.startswith("pool.advertise_host makes this broker one of several")
    url = "postgresql://ibrik@db/ibrik"
    settings = load_settings({"pool.advertise_host": "ibrik-0.ibrik", "metadata.url": url})
    assert settings.pool.is_member
