"""The spec of a BrokerPool as a model, with every default. Pure."""

from ibrik_api.resources.pool import BrokerPoolSpec
from ibrik_operator.keys import Document


def pool_spec(pool: Document) -> BrokerPoolSpec:
    """Raises Refusal `invalid-resource` for what an older or newer definition let through."""
    return BrokerPoolSpec.parse(pool.get("spec") or {})
