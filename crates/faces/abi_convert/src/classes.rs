//! The classes of handles, such as communicators and datatypes, and the macro that makes them for
//! an older ABI.

use crate::abi::Abi;
use crate::constants::Pairs;
use crate::handle::Class;
use crate::requests::Requests;

/// The classes of handles of a library of entry points, except files.
#[allow(missing_docs)] // the names are those of the classes
pub struct Classes<A: Abi> {
    pub comm: Class<A>,
    pub datatype: Class<A>,
    pub errhandler: Class<A>,
    pub group: Class<A>,
    pub info: Class<A>,
    pub message: Class<A>,
    pub op: Class<A>,
    pub request: Requests<A>,
    pub session: Class<A>,
    pub win: Class<A>,
}

/// Makes the [`Classes`] of a library of entry points. The macro `$class` makes one class of: the
/// pairs of predefined handles, the null handles in both ABIs, and true if the library may return
/// an object that the program has already.
#[macro_export]
macro_rules! classes {
    ($program:ident, $class:ident) => {{
        use $crate::constants::{Constants, standard};

        $crate::classes! { @all $program $class;
            comm COMM_HANDLES MPI_COMM_NULL true;
            datatype DATATYPE_HANDLES MPI_DATATYPE_NULL true;
            errhandler ERRHANDLER_HANDLES MPI_ERRHANDLER_NULL true;
            group GROUP_HANDLES MPI_GROUP_NULL true;
            info INFO_HANDLES MPI_INFO_NULL true;
            message MESSAGE_HANDLES MPI_MESSAGE_NULL false;
            op OP_HANDLES MPI_OP_NULL true;
            session SESSION_HANDLES MPI_SESSION_NULL true;
            win WIN_HANDLES MPI_WIN_NULL true;
        }
    }};
    (@all $program:ident $class:ident; $($name:ident $pairs:ident $null:ident $again:literal;)*) => {{
        const NULL: (i64, i64) = ($program::MPI_REQUEST_NULL, standard::MPI_REQUEST_NULL);
        $crate::Classes {
            request: $crate::classes::requests($class(&[NULL], NULL, false)),
            $($name: $class($program::$pairs, ($program::$null, standard::$null), $again),)*
        }
    }};
}

/// The class of requests, from a general class. For the macro [`classes!`](crate::classes!).
pub const fn requests<A: Abi>(class: Class<A>) -> Requests<A> {
    Requests(class)
}

/// A class of handles, for use as a type parameter.
pub trait Named {
    /// The description of the class in the library of entry points.
    fn class<A: Abi>() -> &'static Class<A>;
}

macro_rules! named {
    ($($class:ident $name:ident)*) => {$(
        /// The class of handles with this name.
        pub struct $class;

        impl Named for $class {
            fn class<A: Abi>() -> &'static Class<A> {
                &A::classes().$name
            }
        }
    )*};
}

named! { Comm comm Datatype datatype Win win }

/// All classes, each with the pairs of its predefined handles.
pub fn all<A: Abi>() -> [(&'static Class<A>, Pairs); 10] {
    let classes = A::classes();
    [
        (&classes.request, A::REQUEST_HANDLES),
        (&classes.comm, A::COMM_HANDLES),
        (&classes.datatype, A::DATATYPE_HANDLES),
        (&classes.errhandler, A::ERRHANDLER_HANDLES),
        (&classes.group, A::GROUP_HANDLES),
        (&classes.info, A::INFO_HANDLES),
        (&classes.message, A::MESSAGE_HANDLES),
        (&classes.op, A::OP_HANDLES),
        (&classes.session, A::SESSION_HANDLES),
        (&classes.win, A::WIN_HANDLES),
    ]
}
