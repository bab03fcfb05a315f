"""A scripted model endpoint: a recorded session answers a real harness, and what the harness sends becomes a lane.

`requests` and `answers` are plain data; a protocol (`chat`, `responses`, `anthropic`) turns bytes into the one and the
other into bytes; `script` finds the recorded turn that a request asks for; `kinds`, `summaries` and `usage` are the
rules beside it; `endpoint` puts them together; `recording` writes what came in the layout of a capture; `app` and
`commands` talk to the world.
"""
