"""A call of every procedure, generated from the table of procedures: a Fortran program that calls each once, and a library in the
place of libmpi_abi.so.1 that checks what arrives in C and writes what Fortran checks.

The value of an argument follows from its position and its kind alone, so an argument that is exchanged, left out or not converted is
found. Nothing here knows the generator of the bindings: it reads the table and include/mpi.h.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TABLES = ROOT / "crates" / "faces" / "tables"
HANDLES = ["comm", "datatype", "errhandler", "file", "group", "info", "message", "op", "request", "session", "win"]
# Elements of each array.
LENGTH = 3
# C's handle of an integer n is n + OFFSET.
OFFSET = 0x100000
# Names in Fortran where they differ from the table's.
NAMES = {"indx": "index"}
# Procedures that conversions call by the name of the profiling interface, and what they answer: a communicator of three ranks.
ANSWERS = {
    "Comm_rank": "*rank = 1", "Comm_size": "*size = 3", "Comm_test_inter": "*flag = 0", "Cartdim_get": "*ndims = 3",
    "Topo_test": "*status = MPI_DIST_GRAPH", "Dist_graph_neighbors_count": "*indegree = *outdegree = 3; *weighted = 0",
    # Facts of Fortran are not known, and cannot be told.
    "Abi_get_fortran_booleans": "return 1", "Abi_get_fortran_info": "return 1",
}
# Arguments by address that MPI only reads, so that Fortran may pass a copy.
READ = [("Cancel", "request")]
# MPI 1: what the parts of Type_get_extent give.
PARTS = {"Type_extent": 202, "Type_lb": 201, "Type_ub": 403}
# Functions: the call, and its value.
FUNCTIONS = {"Wtime": ("()", "1.5d0"), "Wtick": ("()", "1.5d0"), "Aint_add": ("(40_MPI_ADDRESS_KIND, 2_MPI_ADDRESS_KIND)", "42"),
             "Aint_diff": ("(40_MPI_ADDRESS_KIND, 2_MPI_ADDRESS_KIND)", "38")}


@dataclass(frozen=True)
class Form:
    """A form in which every procedure is called."""
    # The statement that brings in MPI.
    head: str
    prefix: str = "MPI_"
    # Handles and statuses of derived types.
    f08: bool = False
    # Large counts, under the usual names.
    large: bool = False


FORMS = {
    "mpi": Form("use mpi"), "profiling": Form("use mpi", "PMPI_"), "mpif.h": Form("include 'mpif.h'"),
    "mpi_f08": Form("use mpi_f08", f08=True), "mpi_f08 profiling": Form("use mpi_f08", "PMPI_", f08=True),
    "mpi_f08 large": Form("use mpi_f08", f08=True, large=True),
}
# In these the kinds of integers are those of the usual form, so the form with large counts has a name of its own.
ALIKE = ["Op_create", "Register_datarep", "Type_create_resized", "Type_get_extent", "Type_get_true_extent", "File_get_type_extent"]


@dataclass
class Parameter:
    name: str
    kind: str
    # "", "<", ">" or "<>"
    access: str
    # None, "*", or the name of a parameter or constant.
    length: str | None
    only_large: bool = False


@dataclass
class Procedure:
    name: str
    old: bool
    parameters: list
    returns: bool
    # Whether it has a form with large counts.
    large: bool

    def form(self, large: bool) -> "Procedure":
        """The procedure with the parameters of one form, and its name in C."""
        name = f"{self.name}_c" if large else self.name
        return replace(self, name=name, parameters=[p for p in self.parameters if large or not p.only_large])

    def has(self, name: str) -> bool:
        return any(parameter.name == name for parameter in self.parameters)


def procedures() -> list[Procedure]:
    found = []
    for file, old in (("procedures.txt", False), ("removed.txt", True)):
        for line in (TABLES / file).read_text().splitlines():
            words = line.split()
            if not words or words[0] in ("#", "chapter") or words[0].startswith(("#", "T_")):
                continue
            if words[0].endswith(("_toint", "_fromint")) or (old and words[0].endswith("_c")):
                continue
            parameters = [parameter(word) for word in words[3:] if word != "..."]
            for p in parameters:
                if (words[0], p.name) in READ:
                    p.access = "<"
            is_large = "c" in words[1].partition("=")[0]
            found.append(Procedure(words[0], old, parameters, "=" in words[1], is_large))
    return found


def parameter(word: str) -> Parameter:
    name, _, kind = word.rpartition(":")
    access, kind, length = re.fullmatch(r"([<>]*)(\w+)(?:\[([\w*]*)\])?\??(?:@c)?", kind).groups()
    return Parameter(name or kind, kind, access, "*" if length == "" else length, word.endswith("@c"))


# C: one function for each prototype of the header.

def library() -> str:
    """The source of the library."""
    header = (ROOT / "include" / "mpi.h").read_text()
    prototypes = dict(re.findall(r"^(?:int|double|MPI_Aint) (?=MPI_)(MPI_\w+)\(([^;]*)\);", header, re.M))
    text = ['#include <mpi.h>', '#include <stdint.h>', '#include <stdio.h>', '#include <string.h>',
            "static void *addresses[32];", "static int faults;",
            "void note(int at, void *address) { addresses[at] = address; }",
            "int faults_in_c(void) { return faults; }",
            "static void fault(const char *what) { fprintf(stderr, \"wrong in C: %s\\n\", what); faults++; }"]
    forms = [procedure.form(large) for procedure in procedures() for large in (False, True) if procedure.large or not large]
    for procedure in forms:
        if procedure.returns or procedure.old:
            continue
        arguments = prototypes[f"MPI_{procedure.name}"]
        body = "".join(f"    {line}\n" for at, p in enumerate(procedure.parameters) for line in in_c(procedure, p, at))
        text.append(f"int MPI_{procedure.name}({arguments})\n{{\n{body}    return 0;\n}}")
        if procedure.name in ANSWERS:
            text.append(f"int PMPI_{procedure.name}({arguments})\n{{\n    {ANSWERS[procedure.name]};\n    return 0;\n}}")
        else:
            text.append(f"int PMPI_{procedure.name}({arguments}) __attribute__((alias(\"MPI_{procedure.name}\")));")
    for prefix in ("MPI_", "PMPI_"):
        text += [f"double {prefix}{name}(void) {{ return 1.5; }}" for name in ("Wtime", "Wtick")]
        text += [f"MPI_Aint {prefix}Aint_{name}(MPI_Aint a, MPI_Aint b) {{ return a {sign} b; }}" for name, sign in
                 (("add", "+"), ("diff", "-"))]
        for handle in HANDLES:
            ty = handle.capitalize() if handle != "datatype" else "Type"
            c = "MPI_" + handle.capitalize()
            text += [f"{c} {prefix}{ty}_fromint(int i) {{ return ({c})(intptr_t)(i + {OFFSET}); }}",
                     f"int {prefix}{ty}_toint({c} h) {{ return (int)(intptr_t)h - {OFFSET}; }}"]
    return "\n".join(text) + "\n"


def scalar(procedure: Procedure, p: Parameter, at: int) -> int:
    """The value of an integer that is read."""
    if p.kind == "root" or p.name == "root":
        return 1
    is_length = any(other.length == p.name for other in procedure.parameters)
    if is_length or procedure.name == "Comm_spawn_multiple" and p.name == "count":
        return LENGTH
    return 100 + at


def in_c(procedure: Procedure, p: Parameter, at: int) -> list[str]:
    """The statements that check the argument and write the result."""
    name = p.name
    label = f"MPI_{procedure.name}, {name}"
    # Of main's arguments Fortran passes none.
    if procedure.has("argc") and name in ("argc", "argv"):
        return [f'if ({name}) fault("{label}");']
    check = lambda wrong: [f'if ({wrong}) fault("{label}");']
    each = lambda statement: [f"for (int i = 0; i < {LENGTH}; i++) {statement}"]
    if p.kind in HANDLES:
        ty = "MPI_" + p.kind.capitalize()
        read, write = 5000 + at + OFFSET, 7000 + at + OFFSET
        lines = []
        if p.access != ">":
            lines += each(f'if ((intptr_t){name}[i] != {read} + i) fault("{label}");') if p.length else \
                check(f"(intptr_t){'*' if p.access else ''}{name} != {read}")
        if ">" in p.access:
            lines += each(f"{name}[i] = ({ty})(intptr_t)({write} + i);") if p.length else [f"*{name} = ({ty})(intptr_t){write};"]
        return lines
    match p.kind:
        case "in" | "out" | "ptr":
            return check(f"{name} != addresses[{at}]")
        case "detached" | "state":
            return []
        case "memory":
            return [f"*(intptr_t *){name} = {400 + at};"]
        case "attr":
            return [f"*(intptr_t *){name} = {300 + at};"] if p.access else check(f"*(intptr_t *){name} != {100 + at}")
        case "str" if p.access:
            # Fortran's length has no NUL: it is given as 20.
            return [f'strcpy({name}, "out");']
        case "str":
            return check(f'strcmp({name}, "text")')
        case "argv":
            return check(f'strcmp({name}[0], "text") || strcmp({name}[1], "text") || {name}[2]')
        case "commands":
            return each(f'if (strcmp({name}[i], "text")) fault("{label}");')
        case "argvs":
            return each(f'if (strcmp({name}[i][0], "text") || {name}[i][1]) fault("{label}");')
        case "status":
            if p.access == ">":
                return each(f"{name}[i].MPI_TAG = {200 + at} + i;") if p.length else [f"{name}->MPI_TAG = {200 + at};"]
            return check(f"{name}->MPI_TAG != {100 + at}")
        case "flag" if p.access:
            return each(f"{name}[i] = i != 1;") if p.length else [f"*{name} = 1;"]
        case "flag":
            return each(f'if ({name}[i] != (i != 1)) fault("{label}");') if p.length else check(f"{name} != 1")
        case "index":
            return each(f"{name}[i] = {200 + at} + i;") if p.length else [f"*{name} = {200 + at};"]
        case "triple":
            return each(f'for (int j = 0; j < 3; j++) if ({name}[i][j] != {100 + at} + 3 * i + j) fault("{label}");')
        case kind if kind.startswith("fn_"):
            return check(f"!{name}")
    if p.name in ("buflen", "pset_len"):
        return [*check(f"*{name} != 21"), f"*{name} = 4;"]
    if p.length:
        lines = [] if p.access == ">" else each(f'if ({name}[i] != {100 + at} + i) fault("{label}");')
        return lines + (each(f"{name}[i] = {200 + at} + i;") if p.access else [])
    if p.name == "outcount" and p.access:
        return [f"*{name} = {LENGTH};"]
    lines = [] if p.access == ">" else check(f"{'*' if p.access else ''}{name} != {scalar(procedure, p, at)}")
    return lines + ([f"*{name} = {200 + at};"] if p.access else [])


# Fortran: a subroutine for each procedure.

def integer(procedure: Procedure, p: Parameter, large: bool) -> str:
    """The kind of an integer, or nothing."""
    if large and p.kind in ("count", "count_at_root", "stride", "extent", "bytes"):
        return "COUNT"
    if large and p.kind == "displ":
        return "ADDRESS"
    wide = {"extent": "ADDRESS", "bytes": "ADDRESS", "aint": "ADDRESS", "size": "ADDRESS", "attr": "ADDRESS", "state": "ADDRESS",
            "memory": "ADDRESS", "xcount": "COUNT", "offset": "OFFSET"}.get(p.kind, "")
    return "" if procedure.old and wide == "ADDRESS" else wide


def program(form: Form) -> str:
    """The program that calls each procedure in one form."""
    use, include = (form.head, "") if form.head.startswith("use") else ("", form.head)
    calls, bodies = [], []
    for procedure in procedures():
        if form.prefix == "PMPI_" and procedure.name in ANSWERS or form.f08 and procedure.old or form.large and not procedure.large:
            continue
        name = f"try_{len(calls)}"
        calls.append(f"  call {name}()")
        bodies.append(subroutine(name, procedure, form))
    return f"""program every
  {use}
  use, intrinsic :: iso_c_binding, only: c_f_procpointer, c_funloc, c_int, c_ptr
  implicit none
  {include}
  interface
    subroutine note(at, address) bind(C)
      import :: c_int
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: address
      !DIR$ IGNORE_TKR address
      type(*) :: address(*)
      integer(c_int), value :: at
    end subroutine
    function faults_in_c() bind(C)
      import :: c_int
      integer(c_int) :: faults_in_c
    end function
  end interface
  external :: callback
  integer :: faults = 0
{chr(10).join(calls)}
  if (faults == 0 .and. faults_in_c() == 0) print *, '{len(calls)} procedures'
  if (faults == 0 .and. faults_in_c() == 0) print *, 'ok'
contains
  subroutine check(right, text)
    logical, intent(in) :: right
    character(len=*), intent(in) :: text
    if (right) return
    print *, 'wrong in Fortran: ', text
    faults = faults + 1
  end subroutine
{chr(10).join(bodies)}
end program

subroutine callback()
end subroutine
"""


def subroutine(name: str, procedure: Procedure, form: Form) -> str:
    called = f"{form.prefix}{procedure.name}{'_c' if form.large and procedure.name in ALIKE else ''}"
    if procedure.returns:
        arguments, value = FUNCTIONS[procedure.name]
        return f"  subroutine {name}()\n    call check({called}{arguments} == {value}, '{called}')\n  end subroutine"
    lines = {"declare": [], "before": [], "after": []}
    arguments = []
    for at, p in enumerate(procedure.form(form.large).parameters):
        if procedure.has("argc") and p.name in ("argc", "argv"):
            continue
        arguments.append(argument(procedure, p, at, lines, f"{called}, {p.name}", form))
    # Once without the argument that is optional.
    first = [*lines["before"], statement(called, arguments)] if form.f08 else []
    if procedure.name != "Pcontrol":
        lines["declare"].append("integer :: ierror")
        lines["before"].append("ierror = -1")
        lines["after"].append(f"call check(ierror == 0, '{called}, ierror')")
        arguments.append("ierror")
    # With keywords where there is an interface would be another test: the order counts here.
    call = statement(called, arguments)
    inner = "\n".join(f"    {line}" for line in [*lines["declare"], *first, *lines["before"], call, *lines["after"]])
    return f"  subroutine {name}()\n{inner}\n  end subroutine"


def statement(called: str, arguments: list) -> str:
    return f"call {called}(" + ", &\n      ".join(arguments) + ")"


def argument(procedure: Procedure, p: Parameter, at: int, lines: dict, label: str, form: Form) -> str:
    """The actual argument; its declaration, its value and its check go to `lines`."""
    declare, before, after = lines["declare"].append, lines["before"].append, lines["after"].append
    name = f"a{at}"
    check = lambda right: after(f"call check({right}, '{label}')")
    many = f"({LENGTH})" if p.length else ""
    series = lambda first: f"[{first}, {first + 1}, {first + 2}]" if p.length else str(first)
    whole = lambda value: f"all({value})" if p.length else value
    if p.kind in HANDLES:
        declare(f"{f'type(MPI_{p.kind.capitalize()})' if form.f08 else 'integer'} :: {name}{many}")
        value = f"{name}%MPI_VAL" if form.f08 else name
        before(f"{value} = {series(5000 + at)}")
        if ">" in p.access:
            check(whole(f"{value} == {series(7000 + at)}"))
        return name
    match p.kind:
        case "detached" | "memory" if form.f08:
            declare(f"type(c_ptr) :: {name}")
            if p.kind == "memory":
                check(f"transfer({name}, 0_MPI_ADDRESS_KIND) == {400 + at}")
            return name
        case "status" if form.f08:
            declare(f"type(MPI_Status) :: {name}{many}")
            before(f"{name}%MPI_TAG = {100 + at}")
            if p.access == ">":
                check(whole(f"{name}%MPI_TAG == {series(200 + at)}"))
            return name
        case kind if kind.startswith("fn_") and form.f08:
            ends = "_c" if form.large and kind in ("fn_user_function", "fn_datarep_conversion_function") else ""
            declare(f"procedure(MPI_{kind.removeprefix('fn_').capitalize()}{ends}), pointer :: {name}")
            before(f"call c_f_procpointer(c_funloc(callback), {name})")
            return name
        case "in" | "out" | "ptr" | "detached":
            declare(f"integer, save :: {name}{'' if p.kind == 'ptr' else '(4)'}")
            before(f"call note({at}, {name})")
            return name
        case "argv" | "commands":
            declare(f"character(len=6) :: {name}({LENGTH})")
            before(f"{name} = 'text'")
            if p.kind == "argv":
                before(f"{name}({LENGTH}) = ' '")
            return name
        case "argvs":
            declare(f"character(len=6) :: {name}({LENGTH},2)")
            before(f"{name}(:,1) = 'text'; {name}(:,2) = ' '")
            return name
        case "str":
            declare(f"character(len={p.length if form.f08 and (p.length or '').startswith('MPI_') else 20}) :: {name}")
            before(f"{name} = '{'xxxxxxxxxxxxxxxxxxxx' if p.access else 'text'}'")
            if p.access:
                check(f"{name} == 'out'")
            return name
        case "status":
            declare(f"integer :: {name}(MPI_STATUS_SIZE{f',{LENGTH}' if p.length else ''})")
            before(f"{name} = {100 + at}")
            if p.access == ">":
                check(f"all({name}(MPI_TAG,:) == {series(200 + at)})" if p.length else f"{name}(MPI_TAG) == {200 + at}")
            return name
        case "flag":
            truth = "[.true., .false., .true.]" if p.length else ".true."
            declare(f"logical :: {name}{many}")
            before(f"{name} = {'.false.' if p.access else truth}")
            if p.access:
                check(whole(f"{name} .eqv. {truth}"))
            return name
        case "index":
            declare(f"integer :: {name}{many}")
            check(whole(f"{name} == {series(201 + at)}"))
            return name
        case "triple":
            declare(f"integer :: {name}(3,{LENGTH}), i{at}")
            before(f"{name} = reshape([({100 + at} + i{at}, i{at} = 0, 8)], [3, {LENGTH}])")
            return name
        case kind if kind.startswith("fn_"):
            return "callback"
    kind = integer(procedure, p, form.large)
    declare(f"integer{f'(kind=MPI_{kind}_KIND)' if kind else ''} :: {name}{many}")
    if p.name in ("buflen", "pset_len"):
        before(f"{name} = 20")
        check(f"{name} == 3")
        return name
    before(f"{name} = {series(100 + at) if p.length else scalar(procedure, p, at)}")
    if p.access in (">", "<>"):
        first = {"memory": 400, "attr": 300}.get(p.kind, 200) + at
        first = PARTS.get(procedure.name, first) if procedure.old else first
        if p.name == "outcount":
            first = LENGTH
        check(whole(f"{name} == {series(first)}"))
    return name
