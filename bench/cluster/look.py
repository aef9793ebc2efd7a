"""Runs where the load runs, from standard input: `python - ADDRESS PORT TOPIC`, nothing installed.

Publishes one message as the generator does. Prints how many lines the answer had, since the
generator tells answers apart by that, and how many messages are stored.
"""

import http.client
import json
import sys

STATUS_AND_BLANK = 2

connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=30)
connection.request("POST", f"/v1/topics/{sys.argv[3]}/messages", body=b"x")
answer = connection.getresponse()
lines = STATUS_AND_BLANK + len(answer.getheaders()) + answer.read().count(b"\n")
connection.request("GET", f"/v1/topics/{sys.argv[3]}")
messages = json.load(connection.getresponse())["status"]["messages"]
print(json.dumps({"lines": lines, "messages": messages}))
