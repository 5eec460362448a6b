//! Attributes: values that users cache on communicators, datatypes and windows (MPI 5.0 §7.7).
//!
//! Invariant: a freed key is kept as long as some object has an attribute of it.

use std::sync::Arc;

use crate::handle::{ObjectKind, Slab};
use crate::{Class, Error, Result};

/// A kind of object that has attributes, with the object's handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// A communicator.
    Comm(u32),
    /// A datatype.
    Datatype(u32),
    /// A window.
    Window(u32),
}

impl Holder {
    pub(crate) fn kind(self) -> ObjectKind {
        match self {
            Holder::Comm(_) => ObjectKind::Comm,
            Holder::Datatype(_) => ObjectKind::Datatype,
            Holder::Window(_) => ObjectKind::Window,
        }
    }

    pub(crate) fn handle(self) -> u32 {
        match self {
            Holder::Comm(handle) | Holder::Datatype(handle) | Holder::Window(handle) => handle,
        }
    }
}

/// A user's copy function. Its arguments are the handle of the old object, the key and the value;
/// its result is the value of the new object, or `None` if that is to have none.
pub type CopyFunction = Arc<dyn Fn(u32, u32, usize) -> Result<Option<usize>> + Send + Sync>;

/// A user's delete function. Its arguments are the handle of the object, the key and the value.
pub type DeleteFunction = Arc<dyn Fn(u32, u32, usize) -> Result<()> + Send + Sync>;

/// The effect of a duplication of an object on one of its attributes.
#[derive(Clone)]
pub enum Copied {
    /// The attribute is not copied to the new object.
    Never,
    /// The new object gets the attribute with an equal value.
    AsItIs,
    /// A user's function decides if the new object gets the attribute, and with which value.
    By(CopyFunction),
}

/// A key of attributes that a user made.
pub struct Keyval {
    /// The kind of objects that the key is for.
    pub kind: ObjectKind,
    /// The effect of the duplication of an object on attributes of this key.
    pub copied: Copied,
    /// The function that is called when an attribute of this key is deleted.
    pub delete: Option<DeleteFunction>,
}

/// All keys of attributes of a rank, by handle.
pub struct Keyvals(Slab<KnownKey>);

struct KnownKey {
    keyval: Arc<Keyval>,
    /// True if the user has freed the key: it is removed with its last attribute.
    freed: bool,
}

impl Default for Keyvals {
    fn default() -> Keyvals {
        Keyvals(Slab::new(ObjectKind::Keyval))
    }
}

impl Keyvals {
    /// Adds a key of attributes, and returns its handle.
    pub fn create(&mut self, keyval: Keyval) -> Result<u32> {
        let known = KnownKey {
            keyval: Arc::new(keyval),
            freed: false,
        };
        self.0.insert(known).ok_or_else(|| {
            Error::new(
                Class::NO_MEM,
                "there are a million attribute keys: free some",
            )
        })
    }

    /// Frees a key, which must be for objects of this kind.
    pub fn free(&mut self, kind: ObjectKind, key: u32) -> Result<()> {
        self.usable(kind, key)?;
        if let Some(known) = self.0.get_mut(key) {
            known.freed = true;
        }
        self.tidy(key);
        Ok(())
    }

    /// The key with this handle. It is an error if it has been freed, or is for another kind of
    /// objects.
    pub(crate) fn usable(&self, kind: ObjectKind, key: u32) -> Result<Arc<Keyval>> {
        match self.0.get(key) {
            Some(known) if known.keyval.kind == kind && !known.freed => Ok(known.keyval.clone()),
            Some(known) if known.keyval.kind != kind => {
                let detail = format!(
                    "attribute key {key} is for another kind of object ({:?})",
                    known.keyval.kind
                );
                Err(Error::new(Class::KEYVAL, detail))
            }
            _ => Err(unknown(key)),
        }
    }

    /// Removes the key if it has been freed and no object has an attribute of it.
    pub(crate) fn tidy(&mut self, key: u32) {
        if self
            .0
            .get(key)
            .is_some_and(|known| known.freed && Arc::strong_count(&known.keyval) == 1)
        {
            self.0.remove(key);
        }
    }
}

/// The attributes of one object, in the order in which they were set.
#[derive(Default)]
pub struct Attributes(Vec<Attribute>);

#[derive(Clone)]
pub(crate) struct Attribute {
    pub(crate) key: u32,
    pub(crate) value: usize,
    pub(crate) keyval: Arc<Keyval>,
}

impl Attributes {
    /// True if the object has no attributes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, key: u32) -> Option<&Attribute> {
        self.0.iter().find(|attribute| attribute.key == key)
    }

    pub(crate) fn push(&mut self, attribute: Attribute) {
        self.0.push(attribute);
    }

    /// Removes and returns the attribute that was set last.
    pub(crate) fn pop(&mut self) -> Option<Attribute> {
        self.0.pop()
    }

    /// Removes an attribute. Returns its position and the attribute.
    pub(crate) fn remove(&mut self, key: u32) -> Option<(usize, Attribute)> {
        let at = self.0.iter().position(|attribute| attribute.key == key)?;
        Some((at, self.0.remove(at)))
    }

    /// Inserts an attribute at its former position, or at the end if there are fewer attributes
    /// now.
    pub(crate) fn put_back(&mut self, at: usize, attribute: Attribute) {
        self.0.insert(at.min(self.0.len()), attribute);
    }

    pub(crate) fn to_vec(&self) -> Vec<Attribute> {
        self.0.clone()
    }
}

/// Keys of the predefined attributes of communicators and windows, with the ABI's values.
pub mod predefined {
    /// `MPI_WIN_BASE`.
    pub const WIN_BASE: u32 = 601;
    /// `MPI_WIN_DISP_UNIT`.
    pub const WIN_DISP_UNIT: u32 = 602;
    /// `MPI_WIN_SIZE`.
    pub const WIN_SIZE: u32 = 603;
    /// `MPI_WIN_CREATE_FLAVOR`.
    pub const WIN_CREATE_FLAVOR: u32 = 604;
    /// `MPI_WIN_MODEL`.
    pub const WIN_MODEL: u32 = 605;
    /// `MPI_TAG_UB`.
    pub const TAG_UB: u32 = 501;
    /// `MPI_IO`.
    pub const IO: u32 = 502;
    /// `MPI_HOST`.
    pub const HOST: u32 = 503;
    /// `MPI_WTIME_IS_GLOBAL`.
    pub const WTIME_IS_GLOBAL: u32 = 504;
    /// `MPI_APPNUM`.
    pub const APPNUM: u32 = 505;
    /// `MPI_LASTUSEDCODE`.
    pub const LASTUSEDCODE: u32 = 506;
    /// `MPI_UNIVERSE_SIZE`.
    pub const UNIVERSE_SIZE: u32 = 507;
}

#[cold]
fn unknown(key: u32) -> Error {
    let detail = match key {
        0 => "MPI_KEYVAL_INVALID is not an attribute key".to_string(),
        _ => format!("{key} is not an attribute key: it was never one, or it has been freed"),
    };
    Error::new(Class::KEYVAL, detail)
}
