//! Handles as C passes them: one pointer-sized word each, with a type per class.
//!
//! A predefined handle is its number in the ABI (below 4096). Any other handle is an index in a
//! table of `mpi::handle`. This crate only passes handles on; `toint` and `fromint` are the
//! identity.

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $(
            $(#[$doc])*
            #[repr(transparent)]
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub struct $name(pub usize);

            impl $name {
                /// The handle as a number of `mpi`. A value out of range becomes a handle that is
                /// never valid.
                #[inline(always)]
                pub fn id(self) -> u32 {
                    self.0.min(u32::MAX as usize) as u32
                }
            }

            impl From<$name> for u32 {
                #[inline(always)]
                fn from(handle: $name) -> u32 {
                    handle.id()
                }
            }

            impl From<u32> for $name {
                #[inline(always)]
                fn from(id: u32) -> $name {
                    $name(id as usize)
                }
            }
        )*
    };
}

handles! {
    /// `MPI_Comm`
    Comm
    /// `MPI_Datatype`
    Datatype
    /// `MPI_Errhandler`
    Errhandler
    /// `MPI_File`
    File
    /// `MPI_Group`
    Group
    /// `MPI_Info`
    Info
    /// `MPI_Message`
    Message
    /// `MPI_Op`
    Op
    /// `MPI_Request`
    Request
    /// `MPI_Session`
    Session
    /// `MPI_Win`
    Win
    /// Any handle of the tools interface
    ToolsHandle
}
