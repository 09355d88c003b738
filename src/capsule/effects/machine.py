"""What this machine can enforce; found out by asking the kernel, without starting a process."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from capsule.canon import Json
from capsule.effects.beneath import has_openat2
from capsule.effects.volume import folds_case

_NR_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION

# Each of these, where it exists, turns user namespaces off for ordinary users when it holds this value.
_NAMESPACES_OFF = (
    (Path("/proc/sys/user/max_user_namespaces"), "0"),
    (Path("/proc/sys/kernel/unprivileged_userns_clone"), "0"),
    (Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"), "1"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    system: str
    kernel: str
    architecture: str
    openat2: bool
    landlock_abi: int  # 0: none
    user_namespaces: bool
    bubblewrap: str | None  # where it is
    home_folds_case: bool | None  # None: the home cannot be looked at

    def as_json(self) -> dict[str, Json]:
        return asdict(self)


def probe(*, home: Path) -> Machine:
    names = os.uname()
    return Machine(
        system=names.sysname,
        kernel=names.release,
        architecture=names.machine,
        openat2=has_openat2(),
        landlock_abi=_landlock_abi(),
        user_namespaces=_user_namespaces(),
        bubblewrap=shutil.which("bwrap"),
        home_folds_case=_home_folds_case(home),
    )


def _landlock_abi() -> int:
    if sys.platform != "linux":
        return 0
    call = ctypes.CDLL(None).syscall
    call.restype = ctypes.c_long
    version: int = call(ctypes.c_long(_NR_LANDLOCK_CREATE_RULESET), None, ctypes.c_size_t(0), _LANDLOCK_VERSION)
    return max(0, version)


def _user_namespaces() -> bool:
    if not Path("/proc/self/ns/user").exists():
        return False
    return not any(_value(file) == off for file, off in _NAMESPACES_OFF)


def _value(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None


def _home_folds_case(home: Path) -> bool | None:
    try:
        descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return folds_case(descriptor)
    finally:
        os.close(descriptor)
