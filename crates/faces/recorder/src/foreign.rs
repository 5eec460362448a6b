//! Questions of the recording to the MPI library of the process.

use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

use recording::{Library, Members, Pair, Topology, standard};

use crate::family::{COMM, DATATYPE, Family, INFO};
use crate::original::{invoke, named};
use crate::words;

/// The MPI library of the process.
pub(crate) struct Foreign {
    pub(crate) family: Family,
    functions: Functions,
    /// The members of communicators that calls have used. A call that makes or frees a communicator
    /// empties it, because handles are used again.
    members: RefCell<FxHashMap<u64, Members>>,
}

/// The functions that answer questions. `None`: the library has no such function.
struct Functions {
    comm_rank: Option<*mut c_void>,
    comm_size: Option<*mut c_void>,
    comm_test_inter: Option<*mut c_void>,
    comm_remote_size: Option<*mut c_void>,
    topo_test: Option<*mut c_void>,
    cartdim_get: Option<*mut c_void>,
    graph_neighbors_count: Option<*mut c_void>,
    dist_graph_neighbors_count: Option<*mut c_void>,
    type_size: Option<*mut c_void>,
    type_get_envelope: Option<*mut c_void>,
    info_get_nkeys: Option<*mut c_void>,
    info_get_nthkey: Option<*mut c_void>,
    info_get: Option<*mut c_void>,
    error_class: Option<*mut c_void>,
}

// SAFETY: addresses of functions are valid in all threads.
unsafe impl Send for Functions {}

/// The greatest length of a key or a value of an info object, with its end.
const MOST_TEXT: usize = 1025;

impl Foreign {
    /// The library that is loaded.
    pub(crate) fn loaded() -> Foreign {
        Foreign {
            family: Family::loaded(),
            functions: Functions {
                comm_rank: named(c"PMPI_Comm_rank"),
                comm_size: named(c"PMPI_Comm_size"),
                comm_test_inter: named(c"PMPI_Comm_test_inter"),
                comm_remote_size: named(c"PMPI_Comm_remote_size"),
                topo_test: named(c"PMPI_Topo_test"),
                cartdim_get: named(c"PMPI_Cartdim_get"),
                graph_neighbors_count: named(c"PMPI_Graph_neighbors_count"),
                dist_graph_neighbors_count: named(c"PMPI_Dist_graph_neighbors_count"),
                type_size: named(c"PMPI_Type_size_x"),
                type_get_envelope: named(c"PMPI_Type_get_envelope"),
                info_get_nkeys: named(c"PMPI_Info_get_nkeys"),
                info_get_nthkey: named(c"PMPI_Info_get_nthkey"),
                info_get: named(c"PMPI_Info_get"),
                error_class: named(c"PMPI_Error_class"),
            },
            members: RefCell::default(),
        }
    }

    /// Forgets the members of communicators.
    pub(crate) fn forget(&self) {
        self.members.borrow_mut().clear();
    }

    fn comm(&self, comm: u64) -> u64 {
        self.family.handle(COMM, comm)
    }
}

/// Asks a function for integers about an object, each of which is written behind an address.
/// `None`: there is no such function, or it returned an error.
fn ask<const N: usize>(function: Option<*mut c_void>, handle: u64) -> Option<[c_int; N]> {
    let function = function?;
    let mut results = [0; N];
    let mut words = [handle; 5];
    for (word, result) in words[1..].iter_mut().zip(&mut results) {
        *word = (&raw mut *result).expose_provenance() as u64;
    }
    // SAFETY: the function has a handle and N addresses of integers as its parameters.
    let code = unsafe { invoke(function, &words[..=N]) };
    (code == 0).then_some(results)
}

impl Library for Foreign {
    fn members(&self, comm: u64) -> Result<Members, String> {
        if let Some(known) = self.members.borrow().get(&comm) {
            return Ok(*known);
        }
        let handle = self.comm(comm);
        let find = || {
            let functions = &self.functions;
            let [rank] = ask(functions.comm_rank, handle)?;
            let [size] = ask(functions.comm_size, handle)?;
            let [is_inter] = ask(functions.comm_test_inter, handle)?;
            let peers = match is_inter {
                0 => size,
                _ => ask::<1>(functions.comm_remote_size, handle)?[0],
            };
            Some(Members {
                rank: rank.into(),
                size: size.max(0) as usize,
                peers: peers.max(0) as usize,
                is_inter: is_inter != 0,
            })
        };
        let invalid = standard::MPI_COMM_NULL as u64;
        let found = Some(comm)
            .filter(|comm| *comm != invalid)
            .and_then(|_| find());
        let found = found.ok_or("its communicator is invalid")?;
        self.members.borrow_mut().insert(comm, found);
        Ok(found)
    }

    fn topology(&self, comm: u64) -> Option<Topology> {
        let (handle, functions) = (self.comm(comm), &self.functions);
        let [kind] = ask(functions.topo_test, handle)?;
        if kind == self.family.topologies.grid {
            let [dimensions] = ask(functions.cartdim_get, handle)?;
            let dimensions = dimensions.max(0) as usize;
            return Some(Topology {
                dimensions: Some(dimensions),
                sources: 2 * dimensions,
                destinations: 2 * dimensions,
            });
        }
        let [sources, destinations] = if kind == self.family.topologies.graph {
            let rank = self.members(comm).ok()?.rank as u64;
            let mut neighbours: c_int = 0;
            let place = (&raw mut neighbours).expose_provenance() as u64;
            let function = functions.graph_neighbors_count?;
            // SAFETY: the function has a handle, a rank and the address of an integer.
            let code = unsafe { invoke(function, &[handle, rank, place]) };
            (code == 0).then_some([neighbours; 2])?
        } else if kind == self.family.topologies.dist_graph {
            let [sources, destinations, _] = ask(functions.dist_graph_neighbors_count, handle)?;
            [sources, destinations]
        } else {
            return None;
        };
        Some(Topology {
            dimensions: None,
            sources: sources.max(0) as usize,
            destinations: destinations.max(0) as usize,
        })
    }

    fn pairs(&self, info: u64) -> Result<Vec<Pair>, String> {
        if info == standard::MPI_INFO_NULL as u64 || info == standard::MPI_INFO_ENV as u64 {
            return Ok(Vec::new());
        }
        let handle = self.family.handle(INFO, info);
        let [keys] = ask(self.functions.info_get_nkeys, handle).ok_or("its info is invalid")?;
        let pairs = (0..keys.max(0)).filter_map(|number| self.pair(handle, number));
        // A path of the user has no place in a trace.
        Ok(pairs.filter(|(_, value)| !value.contains(&b'/')).collect())
    }

    fn type_size(&self, datatype: u64) -> Option<u64> {
        let handle = self.family.handle(DATATYPE, datatype);
        let mut size: i64 = 0;
        let place = (&raw mut size).expose_provenance() as u64;
        let function = self.functions.type_size?;
        // SAFETY: the function has a handle and the address of an MPI_Count.
        let code = unsafe { invoke(function, &[handle, place]) };
        (code == 0).then_some(())?;
        u64::try_from(size).ok()
    }

    fn type_members(&self, datatype: u64) -> usize {
        let handle = self.family.handle(DATATYPE, datatype);
        let asked = ask(self.functions.type_get_envelope, handle);
        asked.map_or(0, |[_, _, members, _]: [c_int; 4]| members.max(0) as usize)
    }

    unsafe fn element(
        &self,
        procedure: usize,
        parameter: usize,
        start: *const u8,
        index: usize,
    ) -> i64 {
        // SAFETY: the caller's promise.
        unsafe { words::element(&self.family, procedure, parameter, start, index) }
    }

    fn status_bytes(&self) -> usize {
        self.family.status.0
    }

    unsafe fn source(&self, status: *const u8) -> i64 {
        // SAFETY: the caller's promise: a status has its source at this place.
        let raw = unsafe { status.add(self.family.status.1).cast::<c_int>().read() };
        self.family.rank(raw)
    }

    fn class(&self, code: c_int) -> i64 {
        let mut class: c_int = code;
        if let Some(function) = self.functions.error_class {
            let place = (&raw mut class).expose_provenance() as u64;
            // SAFETY: the function has a code and the address of an integer.
            unsafe { invoke(function, &[code as u64, place]) };
        }
        self.family.error(class)
    }

    fn file_name(&self, name: &[u8]) -> Vec<u8> {
        // A number that all ranks of a call find, and that says nothing about the name.
        let sum = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        format!("file-{sum:016x}").into_bytes()
    }
}

impl Foreign {
    /// A pair of an info object.
    fn pair(&self, info: u64, number: c_int) -> Option<Pair> {
        type Key = unsafe extern "C" fn(u64, c_int, *mut c_char) -> c_int;
        type Get =
            unsafe extern "C" fn(u64, *const c_char, c_int, *mut c_char, *mut c_int) -> c_int;
        let [mut key, mut value] = [[0u8; MOST_TEXT]; 2];
        let mut found: c_int = 0;
        // SAFETY: these are the types of MPI_Info_get_nthkey and MPI_Info_get, which write texts of
        // at most the given length, and no family has longer keys.
        let code = unsafe {
            let nth = transmute::<*mut c_void, Key>(self.functions.info_get_nthkey?);
            let get = transmute::<*mut c_void, Get>(self.functions.info_get?);
            match nth(info, number, key.as_mut_ptr().cast()) {
                0 => {
                    let most = MOST_TEXT as c_int - 1;
                    let (key, value) = (key.as_ptr().cast(), value.as_mut_ptr().cast());
                    get(info, key, most, value, &raw mut found)
                }
                code => code,
            }
        };
        let text = |bytes: &[u8]| {
            let text = CStr::from_bytes_until_nul(bytes).ok()?;
            Some(text.to_bytes().to_vec())
        };
        (code == 0 && found != 0).then_some((text(&key)?, text(&value)?))
    }
}
