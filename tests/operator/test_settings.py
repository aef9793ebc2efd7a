"""Settings of the operator: what the chart sets is read; what is wrong stops the start."""

from pathlib import Path

import pytest

from ibrik_operator.settings import SettingsError, load_settings, variables


@pytest.fixture(autouse=True)
def _none_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in variables():
        monkeypatch.delenv(variable, raising=False)


def test_without_any_variable_it_starts() -> None:
    settings = load_settings()
    assert settings.namespaces == ()
    assert settings.lease.namespace == ""
    assert settings.default_pool() == {}


def test_every_variable_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "NAMESPACES": "shop, bank,",
        "BROKER_IMAGE": "example.com/broker:1",
        "SPARK_IMAGE": "example.com/spark:1",
        "ARCHIVE__UNHEARD_MS": "3000",
        "ARCHIVE__START_MS": "4000",
        "IMAGE_PULL_SECRETS": "one,two",
        "DEFAULT_POOL_FILE": "/etc/pool.yaml",
        "NETWORK_POLICIES": "true",
        "METRICS_NAMESPACE_LABELS": "kubernetes.io/metadata.name=monitoring, team=,",
        "IDENTITY": "operator-0",
        "RESYNC_MS": "2000",
        "LEASE__NAMESPACE": "ibrik-system",
        "LEASE__NAME": "other",
        "HTTP__HOST": "0.0.0.0",
        "HTTP__PORT": "9000",
        "LOGGING__LEVEL": "debug",
    }
    assert sorted(variables()) == sorted(f"IBRIK_OPERATOR_{name}" for name in given)
    for name, value in given.items():
        monkeypatch.setenv(f"IBRIK_OPERATOR_{name}", value)
    settings = load_settings()
    assert settings.namespaces == ("shop", "bank")
    assert settings.image_pull_secrets == ("one", "two")
    assert settings.model_dump(mode="json") == {
        "namespaces": ["shop", "bank"],
        "broker_image": "example.com/broker:1",
        "spark_image": "example.com/spark:1",
        "image_pull_secrets": ["one", "two"],
        "default_pool_file": "/etc/pool.yaml",
        "network_policies": True,
        "metrics_namespace_labels": {"kubernetes.io/metadata.name": "monitoring", "team": ""},
        "identity": "operator-0",
        "resync_ms": 2000,
        "lease": {"namespace": "ibrik-system", "name": "other"},
        "archive": {"unheard_ms": 3000, "start_ms": 4000},
        "http": {"host": "0.0.0.0", "port": 9000},
        "logging": {"level": "debug"},
    }


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("NAMESPACE", "shop",
         "unknown setting IBRIK_OPERATOR_NAMESPACE (did you mean IBRIK_OPERATOR_NAMESPACES?)"),
        ("QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ", "1",
         "unknown setting IBRIK_OPERATOR_QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ"),
        ("RESYNC_MS", "1",
         "IBRIK_OPERATOR_RESYNC_MS: Input should be greater than or equal to 1000"),
        ("METRICS_NAMESPACE_LABELS", "monitoring",
         "IBRIK_OPERATOR_METRICS_NAMESPACE_LABELS: Value error, write labels as name=value, with "
         "commas between"),
        ("HTTP__PORT", "many",
         "IBRIK_OPERATOR_HTTP__PORT: Input should be a valid integer"),
        ("LOGGING__LEVEL", "loud",
         "IBRIK_OPERATOR_LOGGING__LEVEL: Input should be 'debug', 'info', 'warning' or 'error'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(f"IBRIK_OPERATOR_{variable}", value)
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert str(refused.value).startswith(sentence)


def test_the_default_pool_is_what_its_file_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "pool.yaml"
    file.write_text("storage: {size: 2Gi}\n")
    monkeypatch.setenv("IBRIK_OPERATOR_DEFAULT_POOL_FILE", str(file))
    assert load_settings().default_pool() == {"storage": {"size": "2Gi"}}
    file.write_text("")
    assert load_settings().default_pool() == {}


@pytest.mark.parametrize("content", ["storage: {sizes: 2Gi}", "replicas: many", "a: [", "- 1"])
def test_a_file_that_holds_no_pool_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "pool.yaml"
    file.write_text(content)
    monkeypatch.setenv("IBRIK_OPERATOR_DEFAULT_POOL_FILE", str(file))
    with pytest.raises(SettingsError, match=r"pool\.yaml"):
        load_settings().default_pool()


def test_a_file_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IBRIK_OPERATOR_DEFAULT_POOL_FILE", "/nowhere/pool.yaml")
    with pytest.raises(SettingsError, match=r"/nowhere/pool\.yaml"):
        load_settings().default_pool()
