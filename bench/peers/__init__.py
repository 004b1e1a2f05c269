"""The peers that the accuracy of our tables is measured against, each behind the same question and answer.

OpenDP's noise runs in this process. Systems whose requirements contradict ours run as programs, each in an
environment of its own that `bench.peers.environment` makes when it is first needed.
"""
