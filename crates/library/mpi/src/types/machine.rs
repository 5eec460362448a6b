//! The handles of datatypes, and what users attach to them: names and attributes (MPI 5.0 §5).

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use datatype::local_work::Meter;
use datatype::{Kind, Predefined, Type};

use crate::attributes::Attributes;
use crate::comm::cut;
use crate::handle::{ObjectKind, Slab};
use crate::{Class, Error, Result};

/// `MPI_DATATYPE_NULL`, with the ABI's value.
pub const NULL: u32 = 0x200;
/// The first handle of a user's datatype: smaller ones are predefined.
const FIRST: u32 = 0x1000;

/// All datatypes of a rank, by handle.
pub struct Types {
    users: Slab<Entry>,
    /// Names and attributes of predefined datatypes, of the few that have any.
    predefined: BTreeMap<u32, Extra>,
    /// The datatypes of Fortran kinds, each made once and never freed (MPI 5.0 §19.1.9).
    kinds: BTreeMap<Kind, u32>,
    /// The meter at which buffers of the users' datatypes count their copies, on a modelled
    /// machine.
    meter: Option<Arc<Meter>>,
}

struct Entry {
    ty: Type,
    committed: bool,
    extra: Extra,
}

#[derive(Default)]
struct Extra {
    name: Option<String>,
    attributes: Attributes,
}

/// The datatype of a handle, lent by the table or made from the handle.
pub enum DatatypeRef<'a> {
    /// A predefined datatype, made from the handle alone.
    Predefined(Type),
    /// A user's datatype, in the table of datatypes.
    Users(&'a Type),
}

impl Deref for DatatypeRef<'_> {
    type Target = Type;

    #[inline(always)]
    fn deref(&self) -> &Type {
        match self {
            DatatypeRef::Predefined(ty) => ty,
            DatatypeRef::Users(ty) => ty,
        }
    }
}

impl Types {
    /// A table without users' datatypes. `meter`: the rank's meter, on a modelled machine.
    pub(crate) fn metered(meter: Option<Arc<Meter>>) -> Types {
        Types {
            users: Slab::new(ObjectKind::Datatype),
            predefined: BTreeMap::new(),
            kinds: BTreeMap::new(),
            meter,
        }
    }

    /// The meter of work on the rank's own memory. `None` on a real machine.
    pub(crate) fn meter(&self) -> Option<&Arc<Meter>> {
        self.meter.as_ref()
    }

    /// The datatype that a handle names, committed or not.
    #[inline]
    pub fn get(&self, handle: u32) -> Result<DatatypeRef<'_>> {
        if handle < FIRST {
            predefined(handle)
        } else {
            Ok(DatatypeRef::Users(&self.entry(handle)?.ty))
        }
    }

    /// The datatype of a handle, for communication: an error if it is not committed.
    #[inline]
    pub fn committed(&self, handle: u32) -> Result<DatatypeRef<'_>> {
        if handle < FIRST {
            let lent = predefined(handle)?;
            return if lent.size() > 0 {
                Ok(lent)
            } else {
                Err(unsupported(handle))
            };
        }
        let entry = self.entry(handle)?;
        if entry.committed {
            Ok(DatatypeRef::Users(&entry.ty))
        } else {
            Err(uncommitted(handle))
        }
    }

    /// The handle of the committed datatype of a Fortran kind, equal in all calls for this kind.
    pub fn of_kind(&mut self, kind: Kind) -> Result<u32> {
        if let Some(&made) = self.kinds.get(&kind) {
            return Ok(made);
        }
        let made = self.add_copy(Type::f90(kind)?, true, Attributes::default())?;
        self.kinds.insert(kind, made);
        Ok(made)
    }

    /// Adds a datatype, uncommitted, and returns its handle. A predefined datatype and one of a
    /// Fortran kind keep the handle that they have.
    pub fn add(&mut self, ty: Type) -> Result<u32> {
        if let Some(kind) = ty.kind() {
            return self.of_kind(kind);
        }
        match ty.predefined() {
            Some(predefined) => Ok(predefined.handle() as u32),
            None => self.insert(Entry {
                ty,
                committed: false,
                extra: Extra::default(),
            }),
        }
    }

    /// `MPI_Type_commit`.
    pub fn commit(&mut self, handle: u32) -> Result<()> {
        if handle < FIRST {
            return predefined(handle).map(|_| ());
        }
        self.entry_mut(handle)?.committed = true;
        Ok(())
    }

    /// The name that the user gave the datatype, or its predefined name; empty if it has neither.
    pub fn name(&self, handle: u32) -> Result<String> {
        if handle >= FIRST {
            return Ok(self.entry(handle)?.extra.name.clone().unwrap_or_default());
        }
        let given = self
            .predefined
            .get(&handle)
            .and_then(|extra| extra.name.clone());
        let own = || match handle {
            NULL => Ok("MPI_DATATYPE_NULL".to_string()),
            _ => known(handle).map(|predefined| predefined.name().to_string()),
        };
        given.map_or_else(own, Ok)
    }

    /// Names the datatype; a name that is too long is cut off.
    pub fn set_name(&mut self, handle: u32, name: &str) -> Result<()> {
        self.extra_mut(handle)?.name = Some(cut(name).to_string());
        Ok(())
    }

    pub(crate) fn attributes(&self, handle: u32) -> Result<Option<&Attributes>> {
        if handle >= FIRST {
            return Ok(Some(&self.entry(handle)?.extra.attributes));
        }
        known(handle)?;
        Ok(self.predefined.get(&handle).map(|extra| &extra.attributes))
    }

    pub(crate) fn attributes_mut(&mut self, handle: u32) -> Result<&mut Attributes> {
        Ok(&mut self.extra_mut(handle)?.attributes)
    }

    /// Adds a duplicate of a datatype.
    pub(crate) fn add_copy(
        &mut self,
        ty: Type,
        committed: bool,
        attributes: Attributes,
    ) -> Result<u32> {
        self.insert(Entry {
            ty,
            committed,
            extra: Extra {
                name: None,
                attributes,
            },
        })
    }

    /// Checks that a datatype may be freed: it is an error if the datatype is predefined.
    pub(crate) fn check_freeable(&self, handle: u32) -> Result<()> {
        let name = match known(handle) {
            Ok(predefined) => predefined.name(),
            Err(_) => match self.users.get(handle).and_then(|entry| entry.ty.kind()) {
                Some(_) => "a datatype of a Fortran kind",
                None => return Ok(()),
            },
        };
        Err(Error::new(
            Class::TYPE,
            format!("{name} is predefined and cannot be freed"),
        ))
    }

    /// Removes a user's datatype from the table.
    pub(crate) fn remove(&mut self, handle: u32) -> Result<()> {
        let removed = self.users.remove(handle);
        removed.map(drop).ok_or_else(|| unknown(handle))
    }

    fn extra_mut(&mut self, handle: u32) -> Result<&mut Extra> {
        if handle >= FIRST {
            return Ok(&mut self.entry_mut(handle)?.extra);
        }
        known(handle)?;
        Ok(self.predefined.entry(handle).or_default())
    }

    #[inline(always)]
    fn entry(&self, handle: u32) -> Result<&Entry> {
        self.users.get(handle).ok_or_else(|| unknown(handle))
    }

    fn entry_mut(&mut self, handle: u32) -> Result<&mut Entry> {
        self.users.get_mut(handle).ok_or_else(|| unknown(handle))
    }

    fn insert(&mut self, entry: Entry) -> Result<u32> {
        let full = || {
            Error::new(
                Class::NO_MEM,
                "there are a million datatypes: free some of them first",
            )
        };
        if let Some(meter) = &self.meter {
            entry.ty.meter_by(meter);
        }
        self.users.insert(entry).ok_or_else(full)
    }
}

#[inline(always)]
fn predefined(handle: u32) -> Result<DatatypeRef<'static>> {
    known(handle).map(|predefined| DatatypeRef::Predefined(Type::Predefined(predefined)))
}

#[inline(always)]
fn known(handle: u32) -> Result<Predefined> {
    Predefined::from_handle(handle as usize).ok_or_else(|| unknown(handle))
}

#[cold]
fn unknown(handle: u32) -> Error {
    let detail = match handle {
        NULL => "MPI_DATATYPE_NULL is not a datatype that can be used".to_string(),
        _ => format!("{handle:#x} is not a datatype: it was never one, or it has been freed"),
    };
    Error::new(Class::TYPE, detail)
}

#[cold]
fn uncommitted(handle: u32) -> Error {
    let detail = format!(
        "datatype {handle:#x} is not committed: call MPI_Type_commit before communicating with it"
    );
    Error::new(Class::TYPE, detail)
}

#[cold]
fn unsupported(handle: u32) -> Error {
    let name = known(handle).map_or("the datatype", |predefined| predefined.name());
    Error::new(
        Class::TYPE,
        format!("{name} is an optional datatype that is not supported on this machine"),
    )
}
