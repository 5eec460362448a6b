//! Attributes: what users cache on communicators and datatypes (MPI 5.0 §7.7).
//!
//! What must always hold: nothing is locked while a user's function runs, and an attribute is not there while its
//! delete function runs. A freed key lives on as long as some object has an attribute of it.

use std::sync::Arc;

use crate::handle::{Kind, Slab};
use crate::rank::{Rank, State};
use crate::{ANY_SOURCE, Class, Error, PROC_NULL, Result, TAG_UB};

/// What holds an attribute: a handle of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    Comm(u32),
    Datatype(u32),
}

impl Holder {
    fn kind(self) -> Kind {
        match self {
            Holder::Comm(_) => Kind::Comm,
            Holder::Datatype(_) => Kind::Datatype,
        }
    }

    fn handle(self) -> u32 {
        match self {
            Holder::Comm(handle) | Holder::Datatype(handle) => handle,
        }
    }
}

/// Gets the handle of the old object, the key and the value; gives the new object's value, if it shall have one.
pub type CopyFunction = Arc<dyn Fn(u32, u32, usize) -> Result<Option<usize>> + Send + Sync>;
/// Gets the handle of the object, the key and the value.
pub type DeleteFunction = Arc<dyn Fn(u32, u32, usize) -> Result<()> + Send + Sync>;

/// What becomes of an attribute when its object is duplicated.
#[derive(Clone)]
pub enum Copied {
    Never,
    AsItIs,
    By(CopyFunction),
}

/// A key that the user made.
pub struct Keyval {
    pub kind: Kind,
    pub copied: Copied,
    pub delete: Option<DeleteFunction>,
}

/// All keys of a rank.
pub struct Keyvals(Slab<Known>);

struct Known {
    keyval: Arc<Keyval>,
    /// The user has freed it: it goes with its last attribute.
    freed: bool,
}

impl Default for Keyvals {
    fn default() -> Keyvals {
        Keyvals(Slab::new(Kind::Keyval))
    }
}

impl Keyvals {
    pub fn create(&mut self, keyval: Keyval) -> Result<u32> {
        let known = Known {
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

    /// `kind`: of the objects that the key must be for.
    pub fn free(&mut self, kind: Kind, key: u32) -> Result<()> {
        self.usable(kind, key)?;
        if let Some(known) = self.0.get_mut(key) {
            known.freed = true;
        }
        self.tidy(key);
        Ok(())
    }

    fn usable(&self, kind: Kind, key: u32) -> Result<Arc<Keyval>> {
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

    /// Forgets a freed key that nothing has an attribute of.
    fn tidy(&mut self, key: u32) {
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
struct Attribute {
    key: u32,
    value: usize,
    keyval: Arc<Keyval>,
}

impl Attributes {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, key: u32) -> Option<usize> {
        self.0.iter().position(|attribute| attribute.key == key)
    }
}

/// The predefined attributes of communicators that the library of this rank can tell, by the ABI's keys.
pub mod predefined {
    pub const TAG_UB: u32 = 501;
    pub const IO: u32 = 502;
    pub const HOST: u32 = 503;
    pub const WTIME_IS_GLOBAL: u32 = 504;
    pub const APPNUM: u32 = 505;
    pub const LASTUSEDCODE: u32 = 506;
    pub const UNIVERSE_SIZE: u32 = 507;
}

impl Rank {
    /// The value behind a predefined key of communicators (MPI 5.0 §9.1.2). `LASTUSEDCODE` is known to who keeps the
    /// error codes.
    pub fn predefined_attribute(&self, key: u32) -> Option<i32> {
        match key {
            predefined::TAG_UB => Some(TAG_UB),
            predefined::IO => Some(ANY_SOURCE),
            predefined::HOST => Some(PROC_NULL),
            // One machine has one clock.
            predefined::WTIME_IS_GLOBAL => Some(1),
            predefined::APPNUM => Some(0),
            predefined::UNIVERSE_SIZE => Some(self.size() as i32),
            _ => None,
        }
    }

    /// Sets an attribute; an old value is deleted first.
    pub fn set_attribute(&self, holder: Holder, key: u32, value: usize) -> Result<()> {
        refuse_predefined(holder, key)?;
        let keyval = {
            let state = self.lock();
            let attributes = state.attributes(holder)?;
            match attributes.and_then(|attributes| Some(&attributes.0[attributes.find(key)?])) {
                Some(attribute) => attribute.keyval.clone(),
                None => state.keyvals.usable(holder.kind(), key)?,
            }
        };
        self.delete_attribute(holder, key)?;
        self.lock()
            .attributes_mut(holder)?
            .0
            .push(Attribute { key, value, keyval });
        Ok(())
    }

    /// Deletes an attribute, if it is there.
    pub fn delete_attribute(&self, holder: Holder, key: u32) -> Result<()> {
        refuse_predefined(holder, key)?;
        let mut state = self.lock();
        let attributes = state.attributes_mut(holder)?;
        let Some(at) = attributes.find(key) else {
            return state.keyvals.usable(holder.kind(), key).map(|_| ());
        };
        let attribute = attributes.0.remove(at);
        drop(state);
        self.after_delete(holder, at, attribute)
    }

    /// Deletes all attributes of an object, the youngest first. It ends at the first that cannot be deleted.
    pub fn delete_attributes(&self, holder: Holder) -> Result<()> {
        loop {
            let mut state = self.lock();
            let Some(attribute) = state.attributes_mut(holder)?.0.pop() else {
                return Ok(());
            };
            drop(state);
            self.after_delete(holder, usize::MAX, attribute)?;
        }
    }

    /// Calls the delete function of an attribute that was at this place, and puts it back there if that fails.
    fn after_delete(&self, holder: Holder, at: usize, attribute: Attribute) -> Result<()> {
        let Attribute {
            key,
            value,
            ref keyval,
        } = attribute;
        let deleted = keyval
            .delete
            .as_ref()
            .map_or(Ok(()), |delete| delete(holder.handle(), key, value));
        let mut state = self.lock();
        match deleted {
            Ok(()) => {
                drop(attribute);
                state.keyvals.tidy(key);
            }
            Err(_) => {
                let list = &mut state.attributes_mut(holder)?.0;
                list.insert(at.min(list.len()), attribute);
            }
        }
        deleted
    }

    /// What a duplicate of the object has, and the error of the copy function that ended it early.
    pub(crate) fn copy_attributes(&self, holder: Holder) -> Result<(Attributes, Result<()>)> {
        let old = match self.lock().attributes(holder)? {
            Some(attributes) => attributes.0.clone(),
            None => Vec::new(),
        };
        let mut new = Attributes::default();
        for Attribute { key, value, keyval } in old {
            let copied = match &keyval.copied {
                Copied::Never => Ok(None),
                Copied::AsItIs => Ok(Some(value)),
                Copied::By(function) => function(holder.handle(), key, value),
            };
            match copied {
                Ok(Some(value)) => new.0.push(Attribute { key, value, keyval }),
                Ok(None) => {}
                Err(error) => return Ok((new, Err(error))),
            }
        }
        Ok((new, Ok(())))
    }
}

impl State {
    /// The value of an attribute, if the object has it.
    pub fn attribute(&self, holder: Holder, key: u32) -> Result<Option<usize>> {
        let attributes = self.attributes(holder)?;
        match attributes.and_then(|attributes| Some(&attributes.0[attributes.find(key)?])) {
            Some(attribute) => Ok(Some(attribute.value)),
            None => self.keyvals.usable(holder.kind(), key).map(|_| None),
        }
    }

    fn attributes(&self, holder: Holder) -> Result<Option<&Attributes>> {
        match holder {
            Holder::Comm(comm) => Ok(Some(&self.comms.get(comm)?.attributes)),
            Holder::Datatype(ty) => self.types.attributes(ty),
        }
    }

    fn attributes_mut(&mut self, holder: Holder) -> Result<&mut Attributes> {
        match holder {
            Holder::Comm(comm) => Ok(&mut self.comms.get_mut(comm)?.attributes),
            Holder::Datatype(ty) => self.types.attributes_mut(ty),
        }
    }
}

fn refuse_predefined(holder: Holder, key: u32) -> Result<()> {
    if holder.kind() == Kind::Comm
        && (predefined::TAG_UB..=predefined::UNIVERSE_SIZE).contains(&key)
    {
        let detail =
            format!("attribute key {key} is predefined: its value cannot be set or deleted");
        return Err(Error::new(Class::KEYVAL, detail));
    }
    Ok(())
}

#[cold]
fn unknown(key: u32) -> Error {
    let detail = match key {
        0 => "MPI_KEYVAL_INVALID is not an attribute key".to_string(),
        _ => format!("{key} is not an attribute key: it was never one, or it has been freed"),
    };
    Error::new(Class::KEYVAL, detail)
}
