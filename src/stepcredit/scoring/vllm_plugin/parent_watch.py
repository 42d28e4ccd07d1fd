"""An engine core ends with the API server that started it, however that went.

vLLM's core waits for requests of a server that is no more: killed outright, it tells nobody. The kernel's
PR_SET_PDEATHSIG would do, but for the thread, not the process, that started the core. Here a thread of the core
waits for the parent's end of the pipe that `multiprocessing` keeps open while the parent lives.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


def end_with_parent() -> None:
    """End this process as soon as the process that started it is gone; does nothing in a process of one's own.

    An engine without its server has nothing to save, and may be deep in a kernel: it is killed.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="stepcredit-parent-watch", daemon=True).start()
