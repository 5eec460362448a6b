//! Duplicating and freeing datatypes, with their attributes.

use datatype::Type;

use crate::Result;
use crate::attributes::Holder;
use crate::rank::Rank;

impl Rank {
    /// `MPI_Type_dup`. The new datatype gets the attributes that their copy functions pass on, and
    /// is committed if the old one is.
    pub fn type_dup(&self, handle: u32) -> Result<u32> {
        let (ty, committed) = {
            let types = &self.lock().objects.types;
            (
                Type::dup(&*types.get(handle)?)?,
                types.committed(handle).is_ok(),
            )
        };
        let (attributes, copied) = self.copy_attributes(Holder::Datatype(handle))?;
        let new = self
            .lock()
            .objects
            .types
            .add_copy(ty, committed, attributes)?;
        if let Err(error) = copied {
            self.type_free(new)?;
            return Err(error);
        }
        Ok(new)
    }

    /// `MPI_Type_free`. Operations in flight and datatypes that were built from this one stay
    /// valid.
    pub fn type_free(&self, handle: u32) -> Result<()> {
        self.lock().objects.types.check_freeable(handle)?;
        self.delete_attributes(Holder::Datatype(handle))?;
        self.lock().objects.types.remove(handle)
    }
}
