//! Generator of the variables that are recognised by their addresses: MPI_BOTTOM and similar ones.
//! They lie in COMMON blocks, which exist under each symbol that a compiler gives to them, and in
//! some libraries also in variables of a module.

use std::collections::BTreeMap;
use std::fmt::Write;

/// A block of memory with linker symbols of its own, and the Fortran variables in it, in order.
#[derive(Clone, Copy)]
pub struct Block(pub Symbols, pub &'static str, pub &'static [Variable]);

/// The linker symbols of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Symbols {
    /// The symbols of a COMMON block: the name in each of the four manglings of Fortran compilers.
    Common,
    /// The block has one symbol: its name itself.
    Name,
}

impl Block {
    fn symbols(&self) -> Vec<String> {
        match self.0 {
            Symbols::Common => crate::entry::manglings(self.1).into(),
            Symbols::Name => vec![self.1.into()],
        }
    }

    fn size(&self) -> usize {
        self.2.iter().map(|variable| variable.3).sum()
    }
}

/// A variable of a block: its Fortran type, name, shape, and size in bytes.
pub struct Variable(
    pub &'static str,
    pub &'static str,
    pub &'static str,
    pub usize,
);

/// The blocks of the standard ABI. Their names and contents are those of MPICH and of the libraries
/// that share its Fortran names.
pub(crate) const COMMONS: &[Block] = &[
    Block(
        Symbols::Common,
        "MPIPRIV1",
        &[
            Variable("INTEGER", "MPI_BOTTOM", "", 4),
            Variable("INTEGER", "MPI_IN_PLACE", "", 4),
            Variable("INTEGER", "MPI_STATUS_IGNORE", "(8)", 32),
        ],
    ),
    Block(
        Symbols::Common,
        "MPIPRIV2",
        &[
            Variable("INTEGER", "MPI_STATUSES_IGNORE", "(8,1)", 32),
            Variable("INTEGER", "MPI_ERRCODES_IGNORE", "(1)", 4),
        ],
    ),
    Block(
        Symbols::Common,
        "MPIPRIVC",
        &[
            Variable("CHARACTER*1", "MPI_ARGVS_NULL", "(1,1)", 1),
            Variable("CHARACTER*1", "MPI_ARGV_NULL", "(1)", 1),
        ],
    ),
    Block(
        Symbols::Common,
        "MPIFCMB5",
        &[Variable("INTEGER", "MPI_UNWEIGHTED", "(1)", 4)],
    ),
    Block(
        Symbols::Common,
        "MPIFCMB9",
        &[Variable("INTEGER", "MPI_WEIGHTS_EMPTY", "(1)", 4)],
    ),
    Block(
        Symbols::Common,
        "MPIFCMBA",
        &[Variable("INTEGER", "MPI_BUFFER_AUTOMATIC", "", 4)],
    ),
];

/// The variable that represents an automatic buffer of the library. A detach returns its address.
const AUTOMATIC: &str = "MPI_BUFFER_AUTOMATIC";

/// The attribute of a variable, if it has one: `c_loc` must be applicable to MPI_BUFFER_AUTOMATIC
/// (MPI 5.0 §3.6).
pub(crate) fn attribute(name: &str) -> Option<&'static str> {
    (name == AUTOMATIC).then_some("TARGET")
}

/// Type and attribute of a variable, as its declaration begins.
pub(crate) fn with_attribute(ty: &str, name: &str) -> String {
    match attribute(name) {
        Some(attribute) => format!("{ty}, {attribute}"),
        None => ty.into(),
    }
}

/// Variables that are passed as choice buffers, and the variants of `Special`.
const OF_BUFFERS: [(&str, &str); 3] = [
    ("MPI_BOTTOM", "Bottom"),
    ("MPI_IN_PLACE", "InPlace"),
    (AUTOMATIC, "Automatic"),
];

/// Special variables that are passed as other arguments.
const OTHERS: [&str; 7] = [
    "MPI_STATUS_IGNORE",
    "MPI_STATUSES_IGNORE",
    "MPI_ERRCODES_IGNORE",
    "MPI_ARGVS_NULL",
    "MPI_ARGV_NULL",
    "MPI_UNWEIGHTED",
    "MPI_WEIGHTS_EMPTY",
];

/// The variables of `OTHERS` that calls pass most often, so that one comparison recognises them.
const USUAL: [&str; 2] = ["MPI_STATUS_IGNORE", "MPI_STATUSES_IGNORE"];

/// The source text of the module `commons`: the blocks under all their symbols, and for each
/// variable a function that recognises its address.
pub(crate) fn generate(blocks: &[Block]) -> String {
    let mut text = String::new();
    let mut places: BTreeMap<&str, Vec<(&Block, usize)>> = BTreeMap::new();
    for block in blocks {
        let symbols = block.symbols();
        for symbol in &symbols {
            writeln!(text, "block! {{ \"{symbol}\" {} }}", block.size()).unwrap();
        }
        let quoted: Vec<_> = symbols
            .iter()
            .map(|symbol| format!("c\"{symbol}\""))
            .collect();
        writeln!(
            text,
            "/// The block {}.\nstatic {}: Common<{}> = Common::new([{}]);",
            block.1,
            constant(block),
            symbols.len(),
            quoted.join(", ")
        )
        .unwrap();
        let mut offset = 0;
        for variable in block.2 {
            places.entry(variable.1).or_default().push((block, offset));
            offset += variable.3;
        }
    }
    let mut methods = String::new();
    write_special(&mut methods, blocks);
    for name in OTHERS {
        let places = places.get(name).map_or(&[][..], Vec::as_slice);
        write_test(&mut methods, name, places);
    }
    for name in USUAL.iter().chain([&AUTOMATIC]) {
        writeln!(
            text,
            "/// The address of {name} that the program most probably passes.\n\
             static {name}: Loaded<usize> = Loaded::new(0);"
        )
        .unwrap();
    }
    let finds = blocks
        .iter()
        .map(|block| format!("{}.find({}, &mut found);", constant(block), block.size()));
    writeln!(
        methods,
        "fn automatic() -> usize {{\n    {AUTOMATIC}.get()\n}}"
    )
    .unwrap();
    let usual = USUAL.iter().chain([&AUTOMATIC]).map(|name| {
        let places = places[*name]
            .iter()
            .map(|(block, offset)| format!("{}.everywhere({offset})", constant(block)));
        let all = places.reduce(|all, place| format!("{all}.chain({place})"));
        format!("{name}.set(usual({}));", all.unwrap_or_default())
    });
    let all: Vec<_> = finds.chain(usual).collect();
    writeln!(
        methods,
        "unsafe fn find() {{\n    let mut found = Vec::new();\n    \
         // SAFETY: promised.\n    unsafe {{\n        {}\n        note(found);\n    }}\n}}",
        all.join("\n        ")
    )
    .unwrap();
    for (function, name) in [
        ("status_ignore", "MPI_STATUS_IGNORE"),
        ("statuses_ignore", "MPI_STATUSES_IGNORE"),
    ] {
        let (block, offset) = places[name][0];
        let block = constant(block);
        writeln!(
            methods,
            "fn {function}() -> usize {{\n    {block}.at({offset})\n}}"
        )
        .unwrap();
    }
    format!("{text}impl Commons for Program {{\n{methods}}}\n")
}

fn constant(block: &Block) -> String {
    block.1.to_ascii_uppercase()
}

/// An expression that compares an address with all addresses of a variable.
fn comparisons(places: &[(&Block, usize)]) -> String {
    let tests: Vec<_> = places
        .iter()
        .map(|(block, offset)| format!("{}.is({offset}, address)", constant(block)))
        .collect();
    tests.join(" || ")
}

/// Writes the function that recognises the addresses of a variable. For one of `USUAL`, it compares
/// the usual address first.
fn write_test(text: &mut String, name: &str, places: &[(&Block, usize)]) {
    let comparisons = comparisons(places);
    let test = match USUAL.contains(&name) {
        true => {
            format!("address.addr() == {name}.get() || is_near_blocks(address) && ({comparisons})")
        }
        false => comparisons,
    };
    writeln!(
        text,
        "#[inline(always)]\nfn is_{}<T>(address: *const T) -> bool {{\n    {test}\n}}",
        name.to_ascii_lowercase()
    )
    .unwrap();
}

/// Writes the function that recognises variables passed as choice buffers. It needs one comparison
/// for each block.
fn write_special(text: &mut String, blocks: &[Block]) {
    text.push_str(
        "#[inline(always)]\n\
         fn special<T>(address: *const T) -> Option<Special> {\n    \
         if !is_near_blocks(address) {\n        return None;\n    }\n",
    );
    for block in blocks {
        let (mut offset, mut end, mut arms) = (0, 0, String::new());
        for variable in block.2 {
            if let Some((_, variant)) = OF_BUFFERS.iter().find(|(name, _)| *name == variable.1) {
                writeln!(
                    arms,
                    "    if place == Some({offset}) {{\n        return Some(Special::{variant});\n    }}"
                )
                .unwrap();
                end = offset + variable.3;
            }
            offset += variable.3;
        }
        if !arms.is_empty() {
            writeln!(
                text,
                "    let place = {}.place::<{end}, _>(address);\n{arms}",
                constant(block)
            )
            .unwrap();
        }
    }
    text.push_str("    None\n}\n");
}
