"""Lets PyTorch's wheel for Linux run on a processor alone: python tools/cpu_torch.py, with the Python that has it.

The wheel is linked to the libraries of CUDA, which are 2.5 GB, and does not load without them. Nothing of them is called where
there is no card. This puts a library in the place of each that is missing: it has the names that PyTorch asks for, and every
function in it answers "no device". What PyTorch computes on the processor is untouched. Needs gcc and readelf.

The requirements on CUDA are taken out of the wheel's metadata, so that pip does not install them with the next package.
"""
import importlib.metadata
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OURS = re.compile(r"lib(cu|nv|nccl)")  # the libraries of CUDA
NO_DEVICE = 100  # cudaErrorNoDevice


def readelf(path: Path, *options: str) -> list[str]:
    done = subprocess.run(["readelf", "--wide", *options, str(path)], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def wanted(libraries: list[Path]) -> tuple[set[str], dict[str, str]]:
    """The libraries that are missing, and which of them has a version of symbols."""
    present, missing, owner = {path.name for path in libraries}, set(), {}
    for path in libraries:
        needed = [re.search(r"\(NEEDED\).*\[(.*)\]", line) for line in readelf(path, "--dynamic")]
        missing |= {m[1] for m in needed if m and OURS.match(m[1]) and m[1] not in present}
        library = None
        for line in readelf(path, "--version-info"):
            if found := re.search(r"File: (\S+)", line):
                library = found[1]
            elif (found := re.search(r"Name: (\S+)", line)) and library:
                owner[found[1]] = library
    return missing, owner


def symbols(libraries: list[Path], missing: set[str], owner: dict[str, str]) -> dict[str, dict[str, tuple[str, str]]]:
    """What is asked for of each missing library: {library: {symbol: (its version, its type)}}."""
    undefined, defined = {}, set()
    for path in libraries:
        for line in readelf(path, "--dyn-syms"):
            field = line.split()
            if len(field) < 8 or not field[0].rstrip(":").isdigit():
                continue
            name, _, version = field[7].partition("@")
            if field[6] != "UND":
                defined.add(name)
            elif field[4] != "WEAK":
                undefined[name] = (version.lstrip("@"), field[3])
    found = {library: {} for library in missing}
    anywhere = min(missing, key=lambda name: not name.startswith("libcudart"))  # symbols without a version are looked for in all
    for name, (version, kind) in undefined.items():
        library = owner.get(version) if version else None if name in defined or re.match("_?Py", name) else anywhere
        if library in missing:
            found[library][name] = (version, kind)
    return found


def build(library: Path, wanted: dict[str, tuple[str, str]]) -> None:
    """A library in which functions answer "no device", or a text where a text is asked for."""
    code, versions = [], {}
    for i, (name, (version, kind)) in enumerate(sorted(wanted.items())):
        label = f'__asm__("{name}")'
        if kind == "OBJECT":
            code.append(f"char x{i}[4096] {label};")
        elif re.search("String|Name", name):
            code.append(f'const char *x{i}(void) {label}; const char *x{i}(void) {{ return "no device"; }}')
        else:
            code.append(f"long x{i}(void) {label}; long x{i}(void) {{ return {NO_DEVICE}; }}")
        if version:
            versions.setdefault(version, []).append(name)
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder, "x.c"), Path(folder, "x.map")
        source.write_text("\n".join(code) + "\n")
        script.write_text("".join(f"{v} {{ global: {'; '.join(names)}; }};\n" for v, names in versions.items()))
        options = ["-shared", "-fPIC", "-w", f"-Wl,-soname,{library.name}"]
        options += [f"-Wl,--version-script={script}"] if versions else []
        subprocess.run(["gcc", *options, "-o", str(library), str(source)], check=True)


def without_requirements(package: importlib.metadata.Distribution) -> None:
    """Takes the requirements on CUDA, and on the compiler for it, out of the metadata."""
    path = next(package.locate_file(file) for file in package.files if str(file).endswith(".dist-info/METADATA"))
    text = Path(path).read_text(encoding="utf-8")
    Path(path).write_text(re.sub(r"(?m)^Requires-Dist: (cuda|nvidia|triton).*\n", "", text), encoding="utf-8")


def main() -> None:
    package = importlib.metadata.distribution("torch")
    folder = Path(str(package.locate_file("torch/lib")))
    libraries = sorted(path for path in folder.glob("*.so*") if not path.is_symlink())
    missing, owner = wanted(libraries)
    if missing:
        for library, names in symbols(libraries, missing, owner).items():
            build(folder / library, names)
    without_requirements(package)
    print(f"torch {package.version}: {len(missing)} libraries of CUDA left out")


if __name__ == "__main__":
    sys.exit(main())
