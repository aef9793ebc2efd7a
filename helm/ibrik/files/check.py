"""What `helm test` runs in a pod: is the operator ready, does the API server serve our kinds."""

import json
import os
import ssl
import sys
import urllib.request
from pathlib import Path

KINDS = {"brokerpools", "topics", "subscriptions", "channels"}
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_S = 10


def read(url: str, token: str = "", context: ssl.SSLContext | None = None) -> bytes:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:
        content: bytes = answer.read()
    return content


def main(operator: str) -> str | None:
    """The sentence that says what is wrong, or None."""
    try:
        read(f"{operator}/readyz")
    except OSError as error:
        return f"the operator is not ready ({error}): look at its log with kubectl logs"
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        answer = read(f"{address}/apis/ibrik.dev/v1beta1", (ACCOUNT / "token").read_text(), context)
    except OSError as error:
        return f"the API server does not serve ibrik.dev/v1beta1 ({error}): set crds.enabled"
    served = {resource["name"] for resource in json.loads(answer)["resources"]}
    if missing := sorted(KINDS - served):
        return f"the API server does not serve {', '.join(missing)}: upgrade with crds.enabled"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
