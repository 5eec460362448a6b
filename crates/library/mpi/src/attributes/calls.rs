//! Attributes of communicators, datatypes and windows: set, delete, copy, read.
//!
//! Invariant: nothing is locked while a user's function runs, and an object does not
//! have an attribute while the delete function of that attribute runs.

use crate::attributes::{Attribute, Attributes, Copied, Holder, predefined};
use crate::handle::ObjectKind;
use crate::rank::Rank;
use crate::state::Objects;
use crate::{ANY_SOURCE, Class, Error, PROC_NULL, Result, TAG_UB};

impl Rank {
    /// The value of a predefined attribute of communicators (MPI 5.0 §9.1.2). `None` for other
    /// keys, and for `MPI_LASTUSEDCODE`, whose value is kept with the error codes.
    pub fn predefined_attribute(&self, key: u32) -> Option<i32> {
        match key {
            predefined::TAG_UB => Some(TAG_UB),
            predefined::IO => Some(ANY_SOURCE),
            predefined::HOST => Some(PROC_NULL),
            // One machine has one clock.
            predefined::WTIME_IS_GLOBAL => Some(1),
            predefined::APPNUM => Some(self.lock().engine.bootstrap.program() as i32),
            predefined::UNIVERSE_SIZE => Some(self.size() as i32),
            _ => None,
        }
    }

    /// Sets an attribute; an old value is deleted first.
    pub fn set_attribute(&self, holder: Holder, key: u32, value: usize) -> Result<()> {
        refuse_predefined(holder, key)?;
        let keyval = {
            let state = self.lock();
            match state
                .objects
                .attributes(holder)?
                .and_then(|known| known.get(key))
            {
                Some(attribute) => attribute.keyval.clone(),
                None => state.objects.keyvals.usable(holder.kind(), key)?,
            }
        };
        self.delete_attribute(holder, key)?;
        self.lock()
            .objects
            .attributes_mut(holder)?
            .push(Attribute { key, value, keyval });
        Ok(())
    }

    /// Deletes an attribute, if the object has it.
    pub fn delete_attribute(&self, holder: Holder, key: u32) -> Result<()> {
        refuse_predefined(holder, key)?;
        let mut state = self.lock();
        let Some((at, attribute)) = state.objects.attributes_mut(holder)?.remove(key) else {
            return state.objects.keyvals.usable(holder.kind(), key).map(|_| ());
        };
        drop(state);
        self.after_delete(holder, at, attribute)
    }

    /// Deletes all attributes of an object, the one set last first. Stops at the first whose delete
    /// function fails.
    pub fn delete_attributes(&self, holder: Holder) -> Result<()> {
        loop {
            let mut state = self.lock();
            let Some(attribute) = state.objects.attributes_mut(holder)?.pop() else {
                return Ok(());
            };
            drop(state);
            self.after_delete(holder, usize::MAX, attribute)?;
        }
    }

    /// Calls the delete function of an attribute that was removed from position `at`. If the
    /// function fails, puts the attribute back there.
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
                state.objects.keyvals.tidy(key);
            }
            Err(_) => state
                .objects
                .attributes_mut(holder)?
                .put_back(at, attribute),
        }
        deleted
    }

    /// The attributes of a duplicate of the object, and the error of the first copy function that
    /// failed, which ends the copying.
    pub(crate) fn copy_attributes(&self, holder: Holder) -> Result<(Attributes, Result<()>)> {
        let old = self
            .lock()
            .objects
            .attributes(holder)?
            .map(Attributes::to_vec);
        let mut new = Attributes::default();
        for Attribute { key, value, keyval } in old.unwrap_or_default() {
            let copied = match &keyval.copied {
                Copied::Never => Ok(None),
                Copied::AsItIs => Ok(Some(value)),
                Copied::By(function) => function(holder.handle(), key, value),
            };
            match copied {
                Ok(Some(value)) => new.push(Attribute { key, value, keyval }),
                Ok(None) => {}
                Err(error) => return Ok((new, Err(error))),
            }
        }
        Ok((new, Ok(())))
    }
}

impl Objects {
    /// The value of an attribute, if the object has it.
    pub fn attribute(&self, holder: Holder, key: u32) -> Result<Option<usize>> {
        match self.attributes(holder)?.and_then(|known| known.get(key)) {
            Some(attribute) => Ok(Some(attribute.value)),
            None => self.keyvals.usable(holder.kind(), key).map(|_| None),
        }
    }

    fn attributes(&self, holder: Holder) -> Result<Option<&Attributes>> {
        match holder {
            Holder::Comm(comm) => Ok(Some(&self.comms.get(comm)?.attributes)),
            Holder::Datatype(ty) => self.types.attributes(ty),
            Holder::Window(win) => Ok(Some(&self.windows.get(win)?.attributes)),
        }
    }

    fn attributes_mut(&mut self, holder: Holder) -> Result<&mut Attributes> {
        match holder {
            Holder::Comm(comm) => Ok(&mut self.comms.get_mut(comm)?.attributes),
            Holder::Datatype(ty) => self.types.attributes_mut(ty),
            Holder::Window(win) => Ok(&mut self.windows.get_mut(win)?.attributes),
        }
    }
}

fn refuse_predefined(holder: Holder, key: u32) -> Result<()> {
    let keys = match holder.kind() {
        ObjectKind::Comm => predefined::TAG_UB..=predefined::UNIVERSE_SIZE,
        ObjectKind::Window => predefined::WIN_BASE..=predefined::WIN_MODEL,
        _ => return Ok(()),
    };
    if keys.contains(&key) {
        let detail =
            format!("attribute key {key} is predefined: its value cannot be set or deleted");
        return Err(Error::new(Class::KEYVAL, detail));
    }
    Ok(())
}
