"""Memory of this process: returning freed memory to the system, and a limit enforced by the system: anyone
who asks for more is refused.

On Linux the limit counts what the process may write to (RLIMIT_DATA), not a model's file that is only mapped,
and not the addresses that libraries reserve and never use: RLIMIT_AS counts those too (897 MB against 273 MB
with torch and the starter, 281 MB of which were in memory). On Windows a job object counts what is committed.
macOS keeps neither limit."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any


def free_memory() -> None:
    """Frees reference cycles and returns their memory to the system."""
    gc.collect()
    trim_heap()


def trim_heap() -> None:
    """Returns memory that was freed but is still held by the allocator, where the C library supports it.
    Training fragments the heap: with 135 M parameters the process grew by 400 MB in twenty rounds without this
    call."""
    if sys.platform == "linux":
        ask = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if ask is not None:
            ask(0)


_PROCESS_MEMORY, _ACTIVE_PROCESSES, _KILL_ON_CLOSE = 0x100, 0x8, 0x2000
_EXTENDED = 9
"""JobObjectExtendedLimitInformation (winnt.h)."""


class _Basic(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_set", ctypes.c_size_t),
        ("most_set", ctypes.c_size_t),
        ("active_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
    )


class JobLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("basic", _Basic),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process", ctypes.c_size_t),
        ("peak_job", ctypes.c_size_t),
    )


class _Counters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS."""

    _fields_ = (("size", ctypes.c_uint32), ("faults", ctypes.c_uint32), ("rest", ctypes.c_size_t * 8))


def limit_memory(most: int, platform: str = sys.platform) -> bool:
    """Limits the memory of this process to `most` bytes. Returns False if the system has no such limit."""
    if platform == "win32":
        return join_limited_job(kernel32(), most)
    if not platform.startswith("linux"):
        return False
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    return True


def join_limited_job(kernel: Any, most: int, alone: bool = False) -> bool:
    """Puts this process into a Windows job object with a limit of `most` bytes; `alone` also forbids child
    processes. Returns whether that worked."""
    limits = JobLimits()
    limits.basic.flags = _PROCESS_MEMORY | (_ACTIVE_PROCESSES if alone else 0)
    limits.basic.active_processes = 1 if alone else 0
    limits.process_memory = most
    return _join_job(kernel, limits)


def end_together(kernel: Any = None) -> bool:
    """On Windows, makes every process started after this call end with this one, however it ends. Returns
    False if the system refuses; a child then ends when its pipes close."""
    limits = JobLimits()
    limits.basic.flags = _KILL_ON_CLOSE
    return _join_job(kernel or kernel32(), limits)


def _join_job(kernel: Any, limits: JobLimits) -> bool:
    """Puts this process into a new job object, whose handle stays open until the process ends."""
    handle = kernel.CreateJobObjectW(None, None)
    return bool(
        handle
        and kernel.SetInformationJobObject(handle, _EXTENDED, ctypes.byref(limits), ctypes.sizeof(limits))
        and kernel.AssignProcessToJobObject(handle, kernel.GetCurrentProcess())
    )


def committed(kernel: Any) -> int:
    """Returns the bytes that Windows has committed for this process; 0 if unknown."""
    counters = _Counters(size=ctypes.sizeof(_Counters))
    said = kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.size)
    return int(counters.rest[6]) if said else 0  # PagefileUsage


def limit_added_memory(more: int) -> bool:
    """On Windows, limits this process to `more` bytes beyond its present use and forbids child processes.
    Returns whether that worked."""
    kernel = kernel32()
    return join_limited_job(kernel, committed(kernel) + more, alone=True)


def kernel32() -> Any:
    """Returns Windows' kernel32 with the types of the functions used here."""
    library: Any = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    for name in ("CreateJobObjectW", "GetCurrentProcess"):
        getattr(library, name).restype = ctypes.c_void_p
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    library.CreateJobObjectW.argtypes = [pointer, pointer]
    library.SetInformationJobObject.argtypes = [pointer, ctypes.c_int, pointer, number]
    library.AssignProcessToJobObject.argtypes = [pointer, pointer]
    library.K32GetProcessMemoryInfo.argtypes = [pointer, pointer, number]
    return library
