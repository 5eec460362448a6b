"""The module of Soft-iWARP, which Debian's kernel leaves out: built for the machine's kernel, and kept in the cache."""

import os
import re
import shutil
import tarfile
from pathlib import Path

from kernel import Kernel, Trouble, install, run

INSIDE = "drivers/infiniband/sw/siw"


def module(kernel: Kernel) -> Path:
    done = kernel.folder / "siw.ko"
    if done.exists():
        return done
    series = re.match(r"\d+\.\d+", kernel.version)[0]
    headers = Path(f"/usr/src/linux-headers-{kernel.version}")
    source = Path(f"/usr/src/linux-source-{series}.tar.xz")
    install(["make", headers.name, source.name.removesuffix(".tar.xz")])
    if not source.exists() or not headers.exists():
        raise Trouble(f"the packages have brought no {source} or no {headers}")
    work = kernel.folder / "siw"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    with tarfile.open(source) as tar:
        for member in tar:
            if f"/{INSIDE}/" in member.name:
                member.name = Path(member.name).name
                tar.extract(member, work, filter="data")
    # The settings of a `make` around this script are not for the kernel's.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    run("make", "-C", headers, f"M={work}", "CONFIG_RDMA_SIW=m", "modules", env=environment)
    (work / "siw.ko").rename(done)
    shutil.rmtree(work)
    return done
