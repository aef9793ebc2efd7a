"""Whether the tokens of a pool's admin door have to be made. Pure."""

from ibrik_api.kubernetes import ROTATE_ADMIN_TOKEN
from ibrik_operator.keys import Document


def renewed(secret: Document | None, wish: str | None) -> bool | None:
    """None: leave it. False: there is none. True: there is one, which a person wants replaced."""
    if secret is None or not (secret.get("data") or {}).get("current"):
        return False
    done = (secret["metadata"].get("annotations") or {}).get(ROTATE_ADMIN_TOKEN)
    return True if wish is not None and wish != done else None


def has_archive(pool: Document) -> bool:
    return (pool.get("spec") or {}).get("archive") is not None


def lacks_archive_token(secret: Document | None, pool: Document) -> bool:
    """Jobs get a token of their own where the pool archives; it stays until the next rotation."""
    return has_archive(pool) and not ((secret or {}).get("data") or {}).get("archive")
