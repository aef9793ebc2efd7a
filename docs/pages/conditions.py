"""The page of conditions: every reason that a status may give, and what a person does about it."""

from ibrik_operator.conditions.reasons import REASONS
from pages.markdown import page, table


def pages() -> dict[str, str]:
    return {
        "reference/conditions.md": page(
            "Conditions",
            "Every resource says in `status.conditions` how it is. `kubectl get` shows `Ready`,\n"
            "`kubectl describe` shows all, each with a reason and a sentence that has the names\n"
            "at hand. All types are positive: `True` is good.",
            "Two types are for tools: `Reconciling` is `True` while the operator works on it by\n"
            "itself, `Stalled` while only a person can change it.",
            *(f"## {kind}\n\n{table(_HEAD, types)}" for kind, types in _TYPES.items()),
            "`Ready` of a BrokerPool is its first five types together. The others inform: the\n"
            "pool serves meanwhile. While pods are replaced, `BrokersReady` and `Ready` are\n"
            "`False` for the moment in which a pod is away, since its topics are away with it.",
            "`Ready` of the other kinds is all their types together. What the brokers have once\n"
            "confirmed stays `True`: the loss of a broker shows on its BrokerPool, not on a\n"
            "thousand topics.",
            "## Reasons",
            *(
                f"### {reason}\n\n{entry.meaning} {entry.next_step}"
                for reason, entry in sorted(REASONS.items())
            ),
        )
    }


_HEAD = ("Type", "`True` means")
_TYPES = {
    "BrokerPool": (
        ("`Accepted`", "The spec is one that the operator and Kubernetes understand."),
        ("`ObjectsApplied`", "Kubernetes took every object of the pool."),
        ("`BrokersReady`", "Every broker is ready and answers the operator."),
        ("`MetadataReady`", "Every broker reaches its metadata store."),
        ("`StorageAvailable`", "No volume is so full that publishing is refused."),
        ("`Scaled`", "There are as many brokers as wished."),
        ("`VolumesGrown`", "The volumes are as large as wished."),
        ("`UpToDate`", "Every pod is as wished: image, settings, resources."),
    ),
    "Topic": (
        ("`Accepted`", "The name is free and the brokers can serve the spec."),
        ("`PoolReady`", "The BrokerPool is there and ready."),
        ("`Provisioned`", "A broker has the topic."),
        ("`ConfigApplied`", "The brokers have confirmed the newest generation."),
    ),
    "Subscription": (
        ("`TopicResolved`", "The Topic is there and ready."),
        ("`DestinationResolved`", "The destination is there and may be used."),
        ("`DataPlaneReady`", "The brokers have confirmed the newest generation."),
    ),
    "Channel": (
        ("`Resolved`", "A pool serves it, and the spec is one that it can serve."),
        ("`CredentialsValid`", "The brokers have the newest value of every secret it names."),
        ("`MetadataStored`", "The brokers have confirmed the newest generation."),
    ),
}
