//! Errors: a class of the standard, and a text.

use std::borrow::Cow;

/// An error class of MPI 5.0 §9.4, with the ABI's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Class(pub i32);

macro_rules! classes {
    ($($name:ident = $value:literal),* $(,)?) => {
        impl Class {
            $(#[doc = concat!("`MPI_ERR_", stringify!($name), "`.")] pub const $name: Class = Class($value);)*

            /// The name, as `MPI_ERR_TRUNCATE`; `None` for a class that a program has added.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    0 => Some("MPI_SUCCESS"),
                    $($value => Some(concat!("MPI_ERR_", stringify!($name))),)*
                    _ => None,
                }
            }
        }
    };
}

impl Class {
    /// `MPI_SUCCESS`.
    pub const SUCCESS: Class = Class(0);
}

impl From<i32> for Class {
    fn from(value: i32) -> Class {
        Class(value)
    }
}

classes! {
    BUFFER = 1, COUNT = 2, TYPE = 3, TAG = 4, COMM = 5, RANK = 6, REQUEST = 7, ROOT = 8, GROUP = 9,
    OP = 10, TOPOLOGY = 11, DIMS = 12, ARG = 13, UNKNOWN = 14, TRUNCATE = 15, OTHER = 16, INTERN = 17,
    PENDING = 18, IN_STATUS = 19, ACCESS = 20, AMODE = 21, ASSERT = 22, BAD_FILE = 23, BASE = 24, CONVERSION = 25,
    DISP = 26, DUP_DATAREP = 27, FILE_EXISTS = 28, FILE_IN_USE = 29, FILE = 30, INFO_KEY = 31, INFO_NOKEY = 32,
    INFO_VALUE = 33, INFO = 34, IO = 35, KEYVAL = 36, LOCKTYPE = 37, NAME = 38, NO_MEM = 39, NOT_SAME = 40,
    NO_SPACE = 41, NO_SUCH_FILE = 42, PORT = 43, QUOTA = 44, READ_ONLY = 45, RMA_ATTACH = 46, RMA_CONFLICT = 47,
    RMA_RANGE = 48, RMA_SHARED = 49, RMA_SYNC = 50, SERVICE = 51, SIZE = 52, SPAWN = 53, UNSUPPORTED_DATAREP = 54,
    UNSUPPORTED_OPERATION = 55, WIN = 56, RMA_FLAVOR = 57, PROC_ABORTED = 58, VALUE_TOO_LARGE = 59, SESSION = 60,
    ERRHANDLER = 61, ABI = 62, LASTCODE = 16383,
}

/// An error, as error handlers receive it. It is as long as a pointer, so that results are returned
/// in registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Fault>);

/// The contents of an [`Error`]: class, text and cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The MPI error class.
    pub class: Class,
    /// The text for the user: the failure, the rank or peer where it happened, its cause and its
    /// remedy, without the name of the procedure.
    pub detail: Cow<'static, str>,
    /// True if the connection to a peer is lost, perhaps because its process has died.
    pub may_be_death: bool,
    /// The operations that the failure affects.
    pub cause: Cause,
    /// The class that determines the exit code of a fatal error. In an error that sums up those of
    /// several operations, it is the class of the one that caused the failure.
    pub exit_class: Class,
}

/// The operations that a failure affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The failed call, or other operations of this rank alone.
    Local,
    /// All operations that need the peer with this world rank.
    LostPeer(usize),
    /// All collective operations on one communicator: a member has left such an operation after an
    /// error.
    LeftCollective {
        /// The context of the communicator.
        context: u64,
    },
}

/// The result of an operation that can fail with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this class with this text.
    #[cold]
    pub fn new(class: impl Into<Class>, detail: impl Into<Cow<'static, str>>) -> Error {
        let class = class.into();
        Error(Box::new(Fault {
            class,
            detail: detail.into(),
            may_be_death: false,
            cause: Cause::Local,
            exit_class: class,
        }))
    }

    /// This error with another [`Cause`].
    pub(crate) fn because(mut self, cause: Cause) -> Error {
        self.0.cause = cause;
        self
    }

    /// An error that sums up several, with the [`Cause`] and the exit class of one of them,
    /// `cause`.
    pub fn standing_for(mut self, cause: &Error) -> Error {
        self.0.exit_class = cause.exit_class;
        self.0.may_be_death = cause.may_be_death;
        self.0.cause = cause.cause;
        self
    }

    /// True if the failure is a consequence of a lost peer.
    pub fn is_loss(&self) -> bool {
        self.cause != Cause::Local
    }
}

impl std::ops::Deref for Error {
    type Target = Fault;
    fn deref(&self) -> &Fault {
        &self.0
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.class.name() {
            Some(name) => write!(f, "{} ({name})", self.detail),
            None => write!(f, "{} (error class {})", self.detail, self.class.0),
        }
    }
}

impl std::error::Error for Error {}

impl From<channel::Error> for Error {
    #[cold]
    fn from(error: channel::Error) -> Error {
        let class = match error.fault() {
            channel::Fault::Gone { .. } => Class::PROC_ABORTED,
            _ => Class::OTHER,
        };
        let mut made = Error::new(class, error.to_string());
        if let channel::Fault::Lost { may_be_death, .. } = *error.fault() {
            made.0.may_be_death = may_be_death;
        }
        if let Some(peer) = error.lost_peer() {
            made.0.cause = Cause::LostPeer(peer);
        }
        made
    }
}

impl From<datatype::Error> for Error {
    #[cold]
    fn from(error: datatype::Error) -> Error {
        use datatype::Error::*;
        let class = match error {
            Count { .. } => Class::COUNT,
            Argument { .. } | Value { .. } | NoKind { .. } | Lengths { .. } => Class::ARG,
            Unsupported(_) | Nesting { .. } => Class::TYPE,
            TooLarge { .. } | Conversion { .. } => Class::VALUE_TOO_LARGE,
            Operation { .. } | Derived { .. } => Class::OP,
            Room { .. } => Class::TRUNCATE,
        };
        Error::new(class, error.to_string())
    }
}
