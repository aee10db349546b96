"""From file events to changed paths: what is watched, how well, and how it is mended. The only importer of watchdog.

Events are hints. Whatever goes wrong here is answered by an alarm, upon which the daemon scans everything.
"""

from sessiond.watch.inbox import Inbox
from sessiond.watch.watcher import Watcher

__all__ = ["Inbox", "Watcher"]
