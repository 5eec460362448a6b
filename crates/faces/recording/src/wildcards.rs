//! Receives from any source: the source that each has met, which the status of its completion has.
//!
//! A program may want no status. Then the call gets memory of the recording for it.

use std::collections::HashMap;

use trace::{Access, Signature, Value};

use crate::capture::View;
use crate::recorder::StatusMemory;
use crate::standard::MPI_ANY_SOURCE;

/// A receive from any source that has begun and not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// The rank's own number in the communicator of the receive.
    own: i64,
    /// The number of the receive's call among the calls of the rank.
    call: u64,
}

/// The receives from any source of a rank, by the numbers of their requests.
#[derive(Default)]
pub(crate) struct Wildcards {
    /// The receives from any source that have begun, by their requests.
    open: HashMap<i64, Open>,
    /// For persistent receives, the rank's own number in the communicator.
    persistent: HashMap<i64, i64>,
}

/// A call whose statuses can report the source of a receive from any source.
pub(crate) struct Asked {
    /// The memory of the statuses, if the program has none. The argument points to it.
    _memory: Vec<u64>,
    /// The rank's own number in the communicator, if the call itself receives from any source.
    own: Option<i64>,
}

/// The sources, found from statuses, of receives from any source.
#[derive(Default)]
pub(crate) struct Told {
    /// The distance of the source of the call's own receive from the rank.
    pub(crate) own: Option<i64>,
    /// For calls that began earlier, their numbers and the distances of their sources.
    pub(crate) earlier: Vec<(u64, i64)>,
    /// The request of the receive that the call has begun, and the rank's own number.
    pub(crate) begun: Option<(i64, i64)>,
}

impl Wildcards {
    /// Prepares a call for the statuses that it will have. `values`: the values of its parameters.
    /// `None`: its statuses report no source.
    pub(crate) fn ask(
        &self,
        view: &View,
        values: &[Value],
    ) -> Option<(Asked, Option<StatusMemory>)> {
        let signature = view.signature;
        let is_any = is_any(signature, values);
        let own = is_any.then(|| view.own_rank());
        let completes = !self.open.is_empty() && requests(signature).is_some();
        let status = signature.parameters.iter().position(is_status);
        if own.is_none() && !(completes && status.is_some()) {
            return None;
        }
        let mut memory = Vec::new();
        let given = status.filter(|at| view.words[*at] == 0).map(|at| {
            let requests = requests(signature).map_or(1, |at| values[at].numbers().len().max(1));
            let bytes = requests * view.library.status_bytes();
            // A status that the library leaves as it is has no source.
            memory = vec![u64::MAX; bytes.div_ceil(8)];
            StatusMemory {
                parameter: at,
                address: memory.as_mut_ptr().expose_provenance() as u64,
            }
        });
        let asked = Asked {
            _memory: memory,
            own,
        };
        Some((asked, given))
    }

    /// The sources in the statuses of a call that has returned.
    ///
    /// # Safety
    /// The words are the arguments of the call, with memory for its statuses.
    pub(crate) unsafe fn tell(&mut self, view: &View, asked: &Asked, values: &[Value]) -> Told {
        let signature = view.signature;
        let mut told = Told::default();
        let Some(status) = signature.parameters.iter().position(is_status) else {
            told.begun = begun(signature, values).zip(asked.own);
            return told;
        };
        let result = |name: &str| values[signature.position(name)?].number();
        let has_found = signature.position("flag").is_none() || result("flag") == Some(1);
        let statuses = view.words[status] as usize as *const u8;
        let bytes = view.library.status_bytes();
        // SAFETY: the caller's promise: there is a status for each completed request.
        let source = |at: usize| unsafe { view.library.source(statuses.add(at * bytes)) };
        if !has_found {
            return told;
        }
        if let Some(own) = asked.own {
            told.own = Some(source(0)).filter(|met| *met >= 0).map(|met| met - own);
            return told;
        }
        let Some(at) = requests(signature) else {
            return told;
        };
        let single = values[at].number();
        let numbers: Vec<i64> = single.iter().chain(values[at].numbers()).copied().collect();
        let places: Vec<usize> = match (result("indx"), signature.position("array_of_indices")) {
            (Some(index), _) => usize::try_from(index).into_iter().collect(),
            (None, Some(indices)) => {
                let all = values[indices].numbers().iter();
                all.filter_map(|index| usize::try_from(*index).ok())
                    .collect()
            }
            (None, None) => (0..numbers.len()).collect(),
        };
        let is_one = result("indx").is_some();
        for (place, request) in places.iter().enumerate() {
            let open = numbers
                .get(*request)
                .and_then(|number| self.open.remove(number));
            let met = source(if is_one { 0 } else { place });
            if let Some(open) = open.filter(|_| met >= 0) {
                told.earlier.push((open.call, met - open.own));
            }
        }
        told
    }

    /// Keeps a receive that the call with number `call` has begun.
    pub(crate) fn begin(&mut self, (request, own): (i64, i64), call: u64) {
        self.open.insert(request, Open { own, call });
    }

    /// Keeps the persistent receive that a call has made, if it is one from any source.
    pub(crate) fn made(&mut self, view: &View, values: &[Value]) {
        let signature = view.signature;
        if is_any_persistent(signature, values)
            && let Some(request) = begun(signature, values)
        {
            self.persistent.insert(request, view.own_rank());
        }
    }

    /// The persistent receives from any source among these requests, each with the rank's own
    /// number in its communicator.
    pub(crate) fn persistent_among(&self, requests: impl Iterator<Item = i64>) -> Vec<(i64, i64)> {
        let known = requests.map(|request| (request, self.persistent.get(&request)));
        known
            .filter_map(|(request, own)| Some((request, *own?)))
            .collect()
    }

    /// True if no receive from any source is open or persistent.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.persistent.is_empty()
    }

    /// Removes a request whose number belongs to another one now.
    pub(crate) fn forget(&mut self, request: i64) {
        self.open.remove(&request);
        self.persistent.remove(&request);
    }
}

fn is_status(parameter: &trace::Parameter) -> bool {
    parameter.kind == "status" && parameter.access == Access::Out
}

/// True if a call receives from any source.
fn is_any(signature: &Signature, values: &[Value]) -> bool {
    names_any(signature, values) && !signature.name.contains("_init")
}

/// True if a call makes a persistent receive from any source, whose source may differ each time.
fn is_any_persistent(signature: &Signature, values: &[Value]) -> bool {
    names_any(signature, values) && signature.name.starts_with("MPI_Recv_init")
}

fn names_any(signature: &Signature, values: &[Value]) -> bool {
    let source = signature.first_of("source").map(|at| &values[at]);
    source == Some(&Value::Number(MPI_ANY_SOURCE))
}

/// The position of the parameter with the requests that a call may complete.
fn requests(signature: &Signature) -> Option<usize> {
    let mut parameters = signature.parameters.iter();
    parameters.position(|one| one.kind == "request" && one.access == Access::InOut)
}

/// The number of the request that a call has made.
fn begun(signature: &Signature, values: &[Value]) -> Option<i64> {
    values[made(signature)?].number()
}

/// The position of the parameter with the request that a call makes.
pub(crate) fn made(signature: &Signature) -> Option<usize> {
    let mut parameters = signature.parameters.iter();
    parameters.position(|one| one.kind == "request" && one.access == Access::Out)
}
