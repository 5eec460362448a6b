//! Info objects: ordered lists of keys and values. They may be used without a running MPI, so their
//! table belongs to the library, not to the rank.

use crate::constants::*;
use crate::error::Error;
use crate::handle::Info;
use mpi::handle::{ObjectKind, Slab};

/// A key of an info object with its value, both as bytes.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The keys and values of one info object, in the order in which the keys were first set.
#[derive(Clone, Default, Debug)]
pub struct InfoObject {
    pairs: Vec<Pair>,
}

impl InfoObject {
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.pairs
            .iter()
            .find(|pair| pair.0 == key)
            .map(|pair| pair.1.as_slice())
    }

    pub fn set(&mut self, key: &[u8], value: &[u8]) {
        match self.pairs.iter_mut().find(|pair| pair.0 == key) {
            Some(pair) => pair.1 = value.to_vec(),
            None => self.pairs.push((key.to_vec(), value.to_vec())),
        }
    }

    /// Removes a key. Returns false if it was not set.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let before = self.pairs.len();
        self.pairs.retain(|pair| pair.0 != key);
        self.pairs.len() < before
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn key(&self, index: usize) -> Option<&[u8]> {
        self.pairs.get(index).map(|pair| pair.0.as_slice())
    }
}

/// All info objects of the process, by handle.
pub struct InfoTable {
    objects: Slab<InfoObject>,
    /// The contents of MPI_INFO_ENV; `None` until first use.
    environment: Option<InfoObject>,
    /// The name of the host that this process runs on.
    host_name: fn() -> Vec<u8>,
}

impl InfoTable {
    pub const fn new(host_name: fn() -> Vec<u8>) -> InfoTable {
        InfoTable {
            objects: Slab::new(ObjectKind::Info),
            environment: None,
            host_name,
        }
    }

    pub fn insert(&mut self, object: InfoObject) -> Result<Info, Error> {
        let full = || Error::new(MPI_ERR_NO_MEM, "there are too many info objects; free some");
        self.objects.insert(object).map(Info::from).ok_or_else(full)
    }

    pub fn get(&mut self, info: Info) -> Result<&InfoObject, Error> {
        if info == MPI_INFO_ENV {
            let host = (self.host_name)();
            let object = self.environment.get_or_insert_with(|| environment(&host));
            // The host may have changed: MPI_Init may have moved the process to a modelled host.
            object.set(b"host", &host);
            return Ok(object);
        }
        self.objects.get(info.id()).ok_or_else(|| unknown(info))
    }

    /// The keys and values of an info object; none for MPI_INFO_NULL.
    pub fn pairs(&mut self, info: Info) -> Result<&[Pair], Error> {
        match info {
            MPI_INFO_NULL => Ok(&[]),
            _ => Ok(&self.get(info)?.pairs),
        }
    }

    pub fn get_mut(&mut self, info: Info) -> Result<&mut InfoObject, Error> {
        self.objects.get_mut(info.id()).ok_or_else(|| unknown(info))
    }

    pub fn remove(&mut self, info: Info) -> Result<(), Error> {
        self.objects
            .remove(info.id())
            .map(drop)
            .ok_or_else(|| unknown(info))
    }
}

/// The contents of MPI_INFO_ENV in this process.
fn environment(host: &[u8]) -> InfoObject {
    let arguments: Vec<_> = std::env::args_os()
        .map(|argument| argument.into_encoded_bytes())
        .collect();
    described(&arguments, host)
}

/// The contents of MPI_INFO_ENV for a process with these arguments on a host: the keys of MPI 5.0
/// §11.5 whose values can be known without a launcher.
pub(crate) fn described(arguments: &[Vec<u8>], host: &[u8]) -> InfoObject {
    let mut object = InfoObject::default();
    if let [command, rest @ ..] = arguments {
        object.set(b"command", command);
        object.set(b"argv", &rest.join(&b' '));
    }
    object.set(b"arch", std::env::consts::ARCH.as_bytes());
    if let Ok(directory) = std::env::current_dir() {
        object.set(b"wdir", directory.as_os_str().as_encoded_bytes());
    }
    object.set(b"host", host);
    object
}

pub(crate) fn name_of_this_computer() -> Vec<u8> {
    let mut name = [0u8; MPI_MAX_PROCESSOR_NAME as usize];
    // SAFETY: the length excludes the last byte, which stays NUL.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    if failed || end == 0 {
        b"localhost".to_vec()
    } else {
        name[..end].to_vec()
    }
}

#[cold]
fn unknown(info: Info) -> Error {
    let why = match info {
        MPI_INFO_NULL => "MPI_INFO_NULL is no info object".into(),
        MPI_INFO_ENV => "MPI_INFO_ENV can only be read".into(),
        Info(value) => format!("{value:#x} is no info object, or one that was freed"),
    };
    Error::new(MPI_ERR_INFO, why)
}
