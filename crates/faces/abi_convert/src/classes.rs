//! The classes of handles.

use crate::common::constants::*;
use crate::common::handle::Class;
use crate::common::requests::Requests;

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident $class:ident $pairs:ident $null:ident $again:literal;)*) => {
        $(
            $(#[$doc])*
            pub(crate) static $name: Class = Class::new($pairs, (program::$null, standard::$null), $again);

            /// The class as a type.
            #[allow(dead_code)]
            pub(crate) struct $class;

            impl Named for $class {
                fn class() -> &'static Class {
                    &$name
                }
            }
        )*

        /// Every class and its predefined handles.
        #[allow(dead_code)] // a library whose handles are constants needs it in tests alone
        pub(crate) fn all() -> Vec<(&'static Class, &'static [(i64, i64)])> {
            vec![(&*REQUEST, REQUEST_HANDLES), $((&$name, $pairs)),*]
        }
    };
}

/// `MPI_Request`
pub(crate) static REQUEST: Requests = Requests::new();

/// A class as a parameter of a type.
pub(crate) trait Named {
    fn class() -> &'static Class;
}

classes! {
    /// `MPI_Comm`
    COMM Comm COMM_HANDLES MPI_COMM_NULL true;
    /// `MPI_Datatype`
    DATATYPE Datatype DATATYPE_HANDLES MPI_DATATYPE_NULL true;
    /// `MPI_Errhandler`
    ERRHANDLER Errhandler ERRHANDLER_HANDLES MPI_ERRHANDLER_NULL true;
    /// `MPI_Group`
    GROUP Group GROUP_HANDLES MPI_GROUP_NULL true;
    /// `MPI_Info`
    INFO Info INFO_HANDLES MPI_INFO_NULL true;
    /// `MPI_Message`
    MESSAGE Message MESSAGE_HANDLES MPI_MESSAGE_NULL false;
    /// `MPI_Op`
    OP Op OP_HANDLES MPI_OP_NULL true;
    /// `MPI_Session`
    SESSION Session SESSION_HANDLES MPI_SESSION_NULL true;
    /// `MPI_Win`
    WIN Win WIN_HANDLES MPI_WIN_NULL true;
}
