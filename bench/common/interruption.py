"""An interruption (SIGINT, SIGTERM, SIGHUP) ends a program in good order: what it has mounted, attached and traced is given back."""

import contextlib
import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_came = None  # the signal that waits until what has begun is whole
_depth = 0
_status = None  # with which the program ends


def end_in_good_order():
    for number in SIGNALS:
        signal.signal(number, _on_signal)


@contextlib.contextmanager
def whole():
    """An interruption waits until this is done: half a mount cannot be given back."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _came and not _depth:
            _leave()


def end_if_interrupted():
    """Giving back may have failed, and the caller that has caught that goes on."""
    if _status:
        sys.exit(_status)


def _on_signal(number, _):
    global _came
    _came = number
    if not _depth:
        _leave()


def _leave():
    global _came, _status
    _came, _status = None, 128 + _came
    for each in SIGNALS:  # giving back is not interrupted, nor are the programs that it needs
        signal.signal(each, signal.SIG_IGN)
    sys.exit(_status)
