"""Writes Python wheels: one that installs the program, and one of a package with its extension module.

Usage: wheel.py program FILE NAME VERSION PLATFORM FOLDER
       wheel.py package PROJECT LIBRARY MODULE PLATFORM FOLDER

All timestamps are fixed: equal files give equal bytes.
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path


def program(file: str, name: str, version: str, platform: str, folder: str) -> None:
    """Writes a wheel with a program as a script, so that `pip install` puts it on the path."""
    metadata = (
        f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
        "Summary: A multi-agent arena: the program `arena`\nLicense: MIT OR Apache-2.0\nRequires-Python: >=3.8\n"
    )
    files = {f"{name}-{version}.data/scripts/arena": Path(file).read_bytes()}
    write(Path(folder), name, version, f"py3-none-{platform}", metadata, files)


def package(project: str, library: str, module: str, platform: str, folder: str) -> None:
    """Writes a wheel of the package in PROJECT, with LIBRARY as its extension module for Python 3.10 and newer."""
    import tomllib  # Python 3.11

    described = tomllib.loads((Path(project) / "pyproject.toml").read_text())["project"]
    name, version = described["name"].replace("-", "_"), described["version"]
    needs = [f"Requires-Dist: {need}\n" for need in described["dependencies"]]
    for extra, packages in described["optional-dependencies"].items():
        needs.append(f"Provides-Extra: {extra}\n")
        needs += [f'Requires-Dist: {need}; extra == "{extra}"\n' for need in packages]
    metadata = (
        f"Metadata-Version: 2.1\nName: {described['name']}\nVersion: {version}\n"
        f"Summary: {described['description']}\nLicense: {described['license']}\n"
        f"Requires-Python: {described['requires-python']}\n{''.join(needs)}"
    )
    source = Path(project) / "src"
    paths = sorted(path for path in source.rglob("*") if path.is_file() and (path.suffix in (".py", ".pyi") or path.name == "py.typed"))
    files = {path.relative_to(source).as_posix(): path.read_bytes() for path in paths}
    files[f"{name}/{module}.abi3.so"] = Path(library).read_bytes()
    write(Path(folder), name, version, f"cp310-abi3-{platform}", metadata, files)


def write(folder: Path, name: str, version: str, tag: str, metadata: str, files: dict[str, bytes]) -> None:
    """Writes FOLDER/NAME-VERSION-TAG.whl and prints its path."""
    info = f"{name}-{version}.dist-info"
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: arena\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in files.items()
    )
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            # The type bits of a regular file are needed: pip makes nothing else executable.
            entry.external_attr = (0o100755 if path.endswith("/scripts/arena") else 0o100644) << 16
            archive.writestr(entry, data)
    print(wheel)


if __name__ == "__main__":
    {"program": program, "package": package}[sys.argv[1]](*sys.argv[2:])
