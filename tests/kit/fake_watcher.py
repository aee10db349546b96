"""A watcher that lies: what it says it saw is what the test tells it to say."""

from __future__ import annotations


class FakeWatcher:
    """Takes the place of `sessiond.watch.Watcher`; it watches nothing and mends nothing."""

    def __init__(self, inbox):
        self.inbox = inbox
        self.overflows = 0
        self.restarts = 0
        self.followed = 0
        self.is_dead = False

    def tell(self, *paths):
        """Events for these paths, in this order; a dead watcher tells nothing."""
        if not self.is_dead:
            for path in paths:
                self.inbox.put([path])

    def overflow(self):
        self.overflows += 1
        self.inbox.alarm("events were lost in an overflow")

    def follow(self, _roots):
        self.followed += 1

    def check(self, _directories):
        return False

    def covers(self, _directories):
        return True

    def retry(self):
        return False

    def missed(self, _paths):
        pass

    def is_degraded(self):
        return False

    def health(self):
        return []

    def stop(self):
        pass
