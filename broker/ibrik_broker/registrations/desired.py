"""What one desired Channel or Subscription means for the rows there are. Pure.

Identity is (kind, namespace, name); otherwise it is the same story as of topics.
"""

from ibrik_api.resources.meta import ObjectMeta
from ibrik_broker.metadata.resources import ResourceRow, ResourceState
from ibrik_broker.topics.desired import Action, is_news, is_other_incarnation, refuse_stale


def decide(kind: str, metadata: ObjectMeta, mine: ResourceRow | None, *, is_same: bool) -> Action:
    """`is_same`: the row holds this very spec. Raises Refusal `stale-generation`."""
    if mine is None:
        return Action.CREATE
    refuse_stale(kind, metadata, mine)
    if mine.state is ResourceState.DETACHED:
        return Action.READOPT
    if not is_same:
        return Action.UPDATE
    return Action.RECORD if is_news(metadata, mine) else Action.NOTHING


def decide_deletion(metadata: ObjectMeta, mine: ResourceRow | None, *, is_kept: bool) -> Action:
    """`is_kept`: the deletionPolicy says Retain."""
    if mine is None or is_other_incarnation(metadata, mine):
        return Action.FORGET
    if mine.state is ResourceState.DETACHED and is_kept:
        return Action.FORGET
    return Action.DELETE
