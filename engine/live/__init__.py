"""What `engine start` does, for those who look: status, history, metrics, alerts and a page.

All of it reads events (`engine.events`); no part of a turn waits for it or fails with it.
"""
