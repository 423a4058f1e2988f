"""Writes a Python wheel that installs one program.

Usage: wheel.py PROGRAM NAME VERSION PLATFORM FOLDER

The wheel contains the program as a script, so `pip install` puts it on the path. All timestamps are fixed: equal programs
give equal bytes.
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path


def main(program: str, name: str, version: str, platform: str, folder: str) -> None:
    """Writes FOLDER/NAME-VERSION-py3-none-PLATFORM.whl and prints its path."""
    info = f"{name}-{version}.dist-info"
    tag = f"py3-none-{platform}"
    files = {
        f"{name}-{version}.data/scripts/arena": Path(program).read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
            "Summary: A multi-agent arena: the program `arena`\nLicense: MIT OR Apache-2.0\nRequires-Python: >=3.8\n"
        ).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: arena\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in files.items()
    )
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = Path(folder) / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            # The type bits of a regular file are needed: pip makes nothing else executable.
            entry.external_attr = (0o100755 if path.endswith("/arena") else 0o100644) << 16
            archive.writestr(entry, data)
    print(wheel)


if __name__ == "__main__":
    main(*sys.argv[1:])
