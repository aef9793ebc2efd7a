"""The asyncio client of Ibrik: publish, read, follow, subscribe, manage topics.

    async with ibrik_client.connect("http://localhost:8080") as ibrik:
        ack = await ibrik.publish("orders", {"order_id": 101}, key="7")
        async for message in ibrik.follow("orders", from_="earliest"):
            print(message.partition, message.offset, message.json())
        async for message in ibrik.subscribe("billing"):
            async with message:
                charge(message.json())

Imports the contract (`ibrik_api`) and nothing else of ours.
"""

from ibrik_client.client import Client as Client
from ibrik_client.client import connect as connect
from ibrik_client.errors import DamagedRange as DamagedRange
from ibrik_client.errors import Forbidden as Forbidden
from ibrik_client.errors import IbrikError as IbrikError
from ibrik_client.errors import InvalidRequest as InvalidRequest
from ibrik_client.errors import LeaseExpired as LeaseExpired
from ibrik_client.errors import MessagesLost as MessagesLost
from ibrik_client.errors import OffsetOutOfRange as OffsetOutOfRange
from ibrik_client.errors import ServerFailed as ServerFailed
from ibrik_client.errors import Unavailable as Unavailable
from ibrik_client.leasing import Lease as Lease
from ibrik_client.messages import Ack as Ack
from ibrik_client.messages import Gap as Gap
from ibrik_client.messages import Message as Message
from ibrik_client.messages import RawJson as RawJson
from ibrik_client.publisher import Publisher as Publisher
from ibrik_client.retry import RetryPolicy as RetryPolicy
from ibrik_client.subscribing import ReceivedMessage as ReceivedMessage
from ibrik_client.subscribing import Subscription as Subscription
