"""The user's own code: functions that a recipe names, run only from files that the user trusts.

A recipe is data, and may come from somebody else. A function that it names is therefore never
imported by its name: the user names the file (``--trust FILE``), and what is run is the bytes of
that file as they were read and digested.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import (
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from remnant.errors import InvalidInput, PlanError, RemnantError, is_out_of_memory

FORM = "package.module:function"
_LONGEST = 200  # characters of an error's text that are repeated
_OURS = Path(__file__).resolve().parents[1]
_loaded: dict[tuple[Path, str], ModuleType] = {}


@dataclass(frozen=True, slots=True)
class TrustedFile:
    """A file of Python code that the user lets run, as it was when it was read.

    Attributes:
        path: Absolute, without links.
        source: Its bytes; these are what is run, also by workers on other machines.
    """

    path: Path
    source: bytes

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes."""
        return hashlib.sha256(self.source).hexdigest()


def trusted_file(path: str | Path) -> TrustedFile:
    """Read a file of Python code that may be run from now on.

    Raises:
        InvalidInput: It is not there, cannot be read, or is no ``.py`` file.
    """
    path = Path(path)
    if path.suffix != ".py" or not path.is_file():
        what = "is no file of Python code" if path.exists() else "is not there"
        raise InvalidInput(f"{path} {what}.", hint="Name the .py file that holds the function.")
    try:
        return TrustedFile(path.resolve(), path.read_bytes())
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}.") from fault


def split_reference(field: str, reference: str) -> tuple[str, str]:
    """Return the module and the function of a text such as ``package.module:function``.

    Raises:
        InvalidInput: It has another form.

    Example:
        >>> split_reference("model.maker", "networks.small:resnet")
        ('networks.small', 'resnet')
    """
    module, colon, name = reference.partition(":")
    if not (colon and name.isidentifier() and all(p.isidentifier() for p in module.split("."))):
        raise InvalidInput(
            f"{field}={reference!r} is not of the form {FORM}.",
            hint="For make() in networks.py it is networks:make.",
        )
    return module, name


def reference_faults(field: str, reference: str | None) -> list[str]:
    """Return a fault if a field of a recipe names no function."""
    try:
        if reference is not None:
            split_reference(field, reference)
    except InvalidInput as fault:
        return [fault.message.removesuffix(".")]
    return []


def chosen_file(
    field: str, reference: str, trusted: Iterable[TrustedFile], places: Sequence[Path]
) -> TrustedFile:
    """Return the file that a function is read from, if the user trusts it. Runs no code.

    The module is the first one of its name in ``places``. Where none of them has it, it is a
    trusted file whose path ends as the module's name does.

    Args:
        field: That names the function.
        reference: ``package.module:function``.
        trusted: What the user trusts.
        places: Folders in which modules are looked for: the recipe's, then the working folder.

    Raises:
        PlanError: The file is not trusted; the hint says what to type.
    """
    module, _ = split_reference(field, reference)
    files = tuple(trusted)
    there = next(filter(None, (_module_in(place, module) for place in places)), None)
    for file in files:
        if file.path == there or (there is None and _ends_as(file.path, module)):
            return file
    if not files:
        told = "FILE" if there is None else _shown(there)
        where = "" if there is not None else f", where FILE is its {_relative(module)[0]}"
        raise PlanError(
            f"{field}={reference!r} names code, which runs only from a file that you trust.",
            hint=f"Read the code, then add --trust {told}{where}.",
        )
    given = ", ".join(_shown(file.path) for file in files)
    if there is None:
        raise PlanError(
            f"{field}={reference!r} is in no file that you trust (--trust {given}).",
            hint=f"Name the file {_relative(module)[0]} that holds it.",
        )
    raise PlanError(
        f"{field}={reference!r} is read from {_shown(there)}, and you trust {given}.",
        hint=f"Read the code, then pass --trust {_shown(there)}.",
    )


def load_function(field: str, reference: str, file: TrustedFile) -> Callable[..., Any]:
    """Run the bytes of a trusted file and return one of its functions.

    The ``__init__.py`` of its packages is not run. What the file imports is found as ever; modules
    beside it come last, and only those that it imports. They are read from their source, as the
    user can, and not from bytecode.

    Raises:
        InvalidInput: The code fails, with its line; or it has no such function.
    """
    module, name = split_reference(field, reference)
    key = (file.path, file.sha256)
    if key not in _loaded:
        with explained([file], named=f"{field}={reference!r}"):
            _loaded[key] = _run(module, file)
    function = getattr(_loaded[key], name, None)
    if not callable(function):
        raise InvalidInput(f"{field}={reference!r}: {file.path.name} has no function {name}.")
    made: Callable[..., Any] = function
    return made


def call(
    field: str, reference: str, file: TrustedFile, options: Mapping[str, Any] | None = None
) -> Any:
    """Call a function of a trusted file with these keyword arguments and return what it returns.

    What it prints goes to standard error.

    Raises:
        InvalidInput: It fails, with its line.
    """
    function = load_function(field, reference, file)
    with explained([file], named=f"{field}={reference!r}", anywhere=True):
        return function(**(options or {}))


@contextmanager
def explained(
    files: Iterable[TrustedFile], *, named: str = "", anywhere: bool = False
) -> Iterator[None]:
    """Turn an error inside the user's code into one sentence with its line.

    Meanwhile what is printed goes to standard error.

    Args:
        files: The code; without any, nothing is changed.
        named: What the sentence begins with.
        anywhere: Whether an error of another place, such as of wrong arguments, is turned too.

    Raises:
        InvalidInput: In place of the error. Errors of the package and of memory pass.
    """
    known = tuple(files)
    if not known:
        yield
        return
    try:
        with redirect_stdout(sys.stderr):
            yield
    except BaseException as fault:
        passes = isinstance(fault, RemnantError | KeyboardInterrupt | GeneratorExit)
        place = None if passes or is_out_of_memory(fault) else _place(fault, known)
        if place is None and (passes or is_out_of_memory(fault) or not anywhere):
            raise
        begin = ": ".join(part for part in (named, place) if part)
        raise InvalidInput(
            f"{begin}: {said(fault)}.", hint="Fix the code, then run the same command again."
        ) from fault


def said(fault: BaseException) -> str:
    """Return the kind of an error and the first line of its text.

    Example:
        >>> said(ValueError("odd width."))
        'ValueError: odd width'
    """
    text = str(fault).strip().partition("\n")[0].rstrip(".")
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"{type(fault).__name__}: {text}" if text else type(fault).__name__


def _relative(module: str) -> tuple[str, str]:
    """Where a module may be, relative to the folder that holds its first package."""
    inner = module.replace(".", "/")
    return f"{inner}.py", f"{inner}/__init__.py"


def _module_in(place: Path, module: str) -> Path | None:
    found = (place / inner for inner in _relative(module))
    return next((path.resolve() for path in found if path.is_file()), None)


def _ends_as(path: Path, module: str) -> bool:
    return any(path.as_posix().endswith(f"/{inner}") for inner in _relative(module))


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _run(module: str, file: TrustedFile) -> ModuleType:
    """Run a file as a module of a name that nothing else has."""
    tree = ast.parse(file.source, filename=str(file.path))
    own = f"remnant_own_code_{file.sha256[:16]}"
    packages = module.split(".")[: None if file.path.name == "__init__.py" else -1]
    root = file.path.parents[len(packages)]
    if _INSIDE not in sys.meta_path:
        sys.meta_path.insert(0, _INSIDE)
    sys.meta_path.append(_Beside(root, _imported(tree)))
    made = ModuleType(own)
    made.__file__, made.__spec__ = str(file.path), None
    if packages:
        made.__package__ = _stub_packages(f"{own}_package", root, packages)
    sys.modules[own] = made  # dataclasses look their module up
    try:
        exec(compile(tree, str(file.path), "exec", dont_inherit=True), made.__dict__)
    except BaseException:
        del sys.modules[own]
        raise
    return made


def _stub_packages(name: str, root: Path, packages: Sequence[str]) -> str:
    """Make empty packages, so that relative imports find what is beside a file."""
    folder = root
    _INSIDE.packages.add(name)
    for place, package in enumerate(packages):
        name, folder = (name if place == 0 else f"{name}.{package}"), folder / package
        stub = ModuleType(name)
        stub.__path__ = [str(folder)]
        sys.modules[name] = stub
    return name


class _Beside(MetaPathFinder):
    """Finds modules beside a trusted file that it imports, after all other places were searched.

    The folder is not on the path: there, a module that some library would like to import, and that
    is not installed, would be run too.
    """

    def __init__(self, root: Path, names: set[str]) -> None:
        self._root, self._names = root, names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is, if it is beside the file and imported by it."""
        if path is not None or fullname not in self._names:
            return None
        spec = _from_source(PathFinder.find_spec(fullname, [str(self._root)]))
        if spec is not None:
            _INSIDE.packages.add(fullname)
        for file in _files_of(spec):
            self._names |= _imports_of(file)
        return spec


class _Inside(MetaPathFinder):
    """Finds modules of packages beside trusted files, before their bytecode is looked for.

    Attributes:
        packages: Names of those packages, and of single modules beside a file.
    """

    def __init__(self) -> None:
        self.packages: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of such a package is."""
        if path is None or fullname.partition(".")[0] not in self.packages:
            return None
        return _from_source(PathFinder.find_spec(fullname, path, target))


class _SourceLoader(SourceFileLoader):
    """Compiles a module's source; bytecode is neither read nor written."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


_INSIDE = _Inside()


def _from_source(spec: ModuleSpec | None) -> ModuleSpec | None:
    """Return a spec that is loaded from source.

    Raises:
        ModuleNotFoundError: There is bytecode alone.
    """
    if spec is None:
        return None
    if isinstance(spec.loader, SourcelessFileLoader):
        raise ModuleNotFoundError(f"{spec.name} is there without its source", name=spec.name)
    if isinstance(spec.loader, SourceFileLoader):
        spec.loader = _SourceLoader(spec.loader.name, spec.loader.path)
        spec.cached = None
    return spec


def _files_of(spec: ModuleSpec | None) -> list[Path]:
    folders = () if spec is None else (spec.submodule_search_locations or ())
    files = [file for folder in folders for file in Path(folder).rglob("*.py")]
    origin = None if spec is None else spec.origin
    return files if origin is None or not origin.endswith(".py") else [*files, Path(origin)]


def _imports_of(file: Path) -> set[str]:
    try:
        return _imported(ast.parse(file.read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return set()  # running it says what is wrong


def _imported(tree: ast.AST) -> set[str]:
    """The first parts of the names of all modules that code imports by name."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
    return {name.partition(".")[0] for name in names}


def _place(fault: BaseException, files: Sequence[TrustedFile]) -> str | None:
    """Say where in the user's code an error arose, or None where it did not."""
    paths = {str(file.path) for file in files}
    if isinstance(fault, SyntaxError) and fault.filename in paths:
        return f"{Path(fault.filename).name}, line {fault.lineno}"
    folders = [file.path.parent for file in files]
    inside = beside = None
    trace = fault.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        said_there = f"{Path(code.co_filename).name}, line {trace.tb_lineno}"
        if re.fullmatch(r"\w+", code.co_name):  # not <module>, not <lambda>
            said_there += f", in {code.co_name}"
        if code.co_filename in paths:
            inside = said_there
        elif any(_is_beside(Path(code.co_filename), folder) for folder in folders):
            beside = said_there
        trace = trace.tb_next
    return inside or beside


def _is_beside(path: Path, folder: Path) -> bool:
    theirs = path.is_relative_to(_OURS) or "site-packages" in path.parts
    return path.is_relative_to(folder) and not theirs
