"""From nothing to a message that was read back, with the files of the quick start as they are."""

import json

from e2e.support.cluster import ROOT, Cluster
from e2e.support.pods import Client


def test_a_topic_is_applied_and_serves_in_its_namespace(
    installed: Cluster, namespace: str, client: Client
) -> None:
    example = ROOT / "examples" / "quickstart" / "topic.yaml"
    installed.kubectl("apply", "--namespace", namespace, "--filename", str(example))
    installed.kubectl(
        "wait", "--for=condition=Ready", "topics.ibrik.dev/flights", "--namespace", namespace,
        "--timeout=120s",
    )  # fmt: skip
    status, answer = client.call("POST", "/v1/topics/flights/messages", '{"carrier":"UA"}')
    assert (status, json.loads(answer)["durability"]) == (201, "flushed")
    client.publish("flights", 0, 20)
    found = client.read("flights", partitions=4)
    assert {"carrier": "UA"} in found
    assert sorted(one for one in found if isinstance(one, int)) == list(range(20))


def test_the_chart_tests_itself(installed: Cluster) -> None:
    said = installed.helm("test", "ibrik", "--namespace", "ibrik-system", "--timeout", "2m")
    assert "Phase:          Succeeded" in said


def test_columns_say_what_people_ask_for(installed: Cluster, namespace: str) -> None:
    example = ROOT / "examples" / "quickstart" / "topic.yaml"
    installed.kubectl("apply", "--namespace", namespace, "--filename", str(example))
    ready = installed.wait_condition("topics.ibrik.dev", "flights", namespace, "Ready=True")
    assert ready["status"]["topicId"]
    shown = installed.kubectl("get", "topics.ibrik.dev", "--namespace", namespace)
    head, row = (line.split() for line in shown.splitlines())
    columns = dict(zip(head, row, strict=True))
    assert (columns["NAME"], columns["PARTITIONS"], columns["READY"]) == ("flights", "4", "True")
