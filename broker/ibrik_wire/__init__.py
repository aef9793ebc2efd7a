"""The TCP protocol without I/O: bytes in, commands out; replies in, bytes out.

`commands` is the table of what a client may say, `parser` turns bytes into commands, `replies` is
the other direction with a parser of its own. Nothing here reads a socket or a clock, and no input
raises: what cannot be understood comes out as `Invalid`. The format: docs/formats/tcp.md.
"""

from ibrik_wire.commands import Command as Command
from ibrik_wire.commands import Fetch as Fetch
from ibrik_wire.commands import Invalid as Invalid
from ibrik_wire.commands import Ping as Ping
from ibrik_wire.commands import Publish as Publish
from ibrik_wire.commands import Target as Target
from ibrik_wire.commands import encode_fetch as encode_fetch
from ibrik_wire.commands import encode_publish as encode_publish
from ibrik_wire.parser import CommandParser as CommandParser
from ibrik_wire.replies import Failed as Failed
from ibrik_wire.replies import Fetched as Fetched
from ibrik_wire.replies import Pong as Pong
from ibrik_wire.replies import Published as Published
from ibrik_wire.replies import Reply as Reply
from ibrik_wire.replies import ReplyParser as ReplyParser
from ibrik_wire.replies import encode_failure as encode_failure
from ibrik_wire.replies import encode_fetched as encode_fetched
from ibrik_wire.replies import encode_pong as encode_pong
from ibrik_wire.replies import encode_published as encode_published
