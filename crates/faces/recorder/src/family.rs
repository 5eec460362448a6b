//! The families of MPI libraries: the values of their constants and the form of their handles and
//! statuses. The values are generated from the tables of `convert_tables`.

use rustc_hash::FxHashMap;
use std::ffi::{CStr, c_int, c_void};

use recording::standard::{MPI_CART, MPI_DIST_GRAPH, MPI_GRAPH};

use crate::original::{library, named};

include!(concat!(env!("OUT_DIR"), "/constants.rs"));

/// The meaning of ranks, and that of error classes.
const RANK: usize = 0;
const ERROR: usize = SUMS - 1;

/// A constant's value in a family.
enum Raw {
    Value(i64),
    /// The address of the object with this name.
    Symbol(&'static CStr),
}

/// The constants of a family, each with its value in the standard ABI.
pub(crate) struct Constants {
    handles: [&'static [(Raw, i64)]; CLASSES],
    meanings: [&'static [(Raw, i64)]; MEANINGS],
    addresses: &'static [(Raw, i64)],
    topologies: &'static [(Raw, i64)],
}

/// The form of a value behind a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A handle of this class.
    Handle(usize),
    /// An integer that may be a constant of this meaning, of 64 bits if true.
    Constant(usize, bool),
    /// An integer of 32 bits.
    Int,
    /// An integer of 64 bits.
    Wide,
}

/// The family of the process's MPI library.
pub(crate) struct Family {
    /// True if handles, other than those of files, have 32 bits.
    short_handles: bool,
    /// The number of bytes in a status, and the place of the source in it.
    pub(crate) status: (usize, usize),
    handles: [Predefined; CLASSES],
    meanings: [Vec<(i64, i64)>; MEANINGS],
    addresses: Vec<(u64, i64)>,
    pub(crate) topologies: Topologies,
}

/// The most handles that are compared one by one.
const FEW: usize = 4;

/// The predefined handles of a class, with their values in the standard ABI.
struct Predefined {
    pairs: Vec<(u64, i64)>,
    /// The same, if they are many.
    many: FxHashMap<u64, i64>,
}

impl Predefined {
    fn new(pairs: Vec<(u64, i64)>) -> Predefined {
        let many = match pairs.len() {
            ..=FEW => FxHashMap::default(),
            _ => pairs.iter().copied().collect(),
        };
        Predefined { pairs, many }
    }

    /// The value in the standard ABI of a handle, if it is predefined.
    fn standard(&self, raw: u64) -> Option<i64> {
        if self.pairs.len() > FEW {
            return self.many.get(&raw).copied();
        }
        let found = self.pairs.iter().find(|pair| pair.0 == raw);
        found.map(|pair| pair.1)
    }
}

/// The numbers of the topologies.
pub(crate) struct Topologies {
    pub(crate) grid: c_int,
    pub(crate) graph: c_int,
    pub(crate) dist_graph: c_int,
}

impl Family {
    /// The family of the library that is loaded.
    pub(crate) fn loaded() -> Family {
        let name = library().map_or("", |library| library.name.as_str());
        if named(c"ompi_mpi_comm_world").is_some() {
            Family::of(&OPEN_MPI, false, (24, 0))
        } else if name.contains("mpi_abi") {
            // The standard gives its ABI this name.
            Family::of(&STANDARD, false, (32, 0))
        } else {
            let mut family = Family::of(&MPICH, true, (20, 8));
            // Variables that have the addresses.
            let addresses = [(c"MPI_UNWEIGHTED", 10), (c"MPI_WEIGHTS_EMPTY", 11)];
            for (variable, standard) in addresses {
                if let Some(place) = object(variable) {
                    // SAFETY: MPICH's library has a variable with an address there.
                    let address = unsafe { *place.cast::<u64>() };
                    family.addresses.push((address, standard));
                }
            }
            family
        }
    }

    fn of(constants: &Constants, short_handles: bool, status: (usize, usize)) -> Family {
        let value = |raw: &Raw| match raw {
            Raw::Value(value) => Some(*value),
            Raw::Symbol(name) => object(name).map(|place| place as usize as i64),
        };
        let pairs = |all: &[(Raw, i64)]| -> Vec<(i64, i64)> {
            let all = all.iter();
            all.filter_map(|(raw, standard)| Some((value(raw)?, *standard)))
                .collect()
        };
        let addresses = pairs(constants.addresses);
        let topology = |standard: i64| {
            let mut own = pairs(constants.topologies).into_iter();
            let own = own.find(|pair| pair.1 == standard);
            own.map_or(standard, |pair| pair.0) as c_int
        };
        Family {
            short_handles,
            status,
            handles: constants.handles.map(|all| {
                let pairs = pairs(all).into_iter();
                Predefined::new(
                    pairs
                        .map(|(raw, standard)| (raw as u64, standard))
                        .collect(),
                )
            }),
            meanings: constants.meanings.map(pairs),
            topologies: Topologies {
                grid: topology(MPI_CART),
                graph: topology(MPI_GRAPH),
                dist_graph: topology(MPI_DIST_GRAPH),
            },
            addresses: addresses
                .into_iter()
                .map(|(raw, standard)| (raw as u64, standard))
                .collect(),
        }
    }

    /// The value in the standard ABI of a raw value of this form.
    pub(crate) fn standard(&self, form: Form, raw: u64) -> i64 {
        match form {
            Form::Handle(class) => {
                let raw = match self.has_short_handles(class) {
                    true => u64::from(raw as u32),
                    false => raw,
                };
                let predefined = self.handles[class].standard(raw);
                predefined.unwrap_or(raw as i64)
            }
            Form::Constant(meaning, is_wide) => {
                let raw = if is_wide {
                    raw as i64
                } else {
                    i64::from(raw as c_int)
                };
                self.constant(meaning, raw)
            }
            Form::Int => (raw as c_int).into(),
            Form::Wide => raw as i64,
        }
    }

    fn constant(&self, meaning: usize, raw: i64) -> i64 {
        let pairs = &self.meanings[meaning];
        if meaning >= SUMS {
            let is_part = |pair: &&(i64, i64)| raw & pair.0 != 0;
            let known = pairs.iter().fold(0, |sum, pair| sum | pair.0);
            let parts = pairs.iter().filter(is_part).map(|pair| pair.1);
            return parts.fold(raw & !known, |sum, part| sum | part);
        }
        let found = pairs.iter().find(|pair| pair.0 == raw);
        found.map_or(raw, |pair| pair.1)
    }

    /// The rank in the standard ABI for one that may be a constant.
    pub(crate) fn rank(&self, raw: c_int) -> i64 {
        self.constant(RANK, raw.into())
    }

    /// The class of an error code that the library has found to be this class.
    pub(crate) fn error(&self, class: c_int) -> i64 {
        self.constant(ERROR, class.into())
    }

    /// The address in the standard ABI of an address that may be a constant.
    pub(crate) fn address(&self, raw: u64) -> u64 {
        let found = self.addresses.iter().find(|pair| pair.0 == raw);
        found.map_or(raw, |pair| pair.1 as u64)
    }

    /// The library's handle for one that has been made standard.
    pub(crate) fn handle(&self, class: usize, standard: u64) -> u64 {
        if standard >= trace::FIRST_MADE as u64 {
            return standard;
        }
        let mut pairs = self.handles[class].pairs.iter();
        let found = pairs.find(|pair| pair.1 == standard as i64);
        found.map_or(standard, |pair| pair.0)
    }

    /// True if an element of this form has 32 bits.
    pub(crate) fn is_short(&self, form: Form) -> bool {
        match form {
            Form::Handle(class) => self.has_short_handles(class),
            Form::Constant(_, is_wide) => !is_wide,
            Form::Int => true,
            Form::Wide => false,
        }
    }

    fn has_short_handles(&self, class: usize) -> bool {
        self.short_handles && class != FILE
    }
}

/// The address of the object with this name. A program may have copies of the library's objects,
/// which the library then uses itself.
fn object(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a C string.
    let own = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    match own.is_null() {
        true => named(name),
        false => Some(own),
    }
}
