//! The ABI values of the constructors of datatypes (`MPI_COMBINER_VECTOR` and its like), and of the
//! orders of an array's dimensions (`MPI_ORDER_C`, `MPI_ORDER_FORTRAN`).

/// The constructors of datatypes, by their ABI values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[non_exhaustive]
pub enum Combiner {
    /// A predefined type.
    Named = 101,
    /// `MPI_Type_dup`.
    Dup = 102,
    /// `MPI_Type_contiguous`.
    Contiguous = 103,
    /// `MPI_Type_vector`.
    Vector = 104,
    /// `MPI_Type_create_hvector`.
    Hvector = 105,
    /// `MPI_Type_indexed`.
    Indexed = 106,
    /// `MPI_Type_create_hindexed`.
    Hindexed = 107,
    /// `MPI_Type_create_indexed_block`.
    IndexedBlock = 108,
    /// `MPI_Type_create_hindexed_block`.
    HindexedBlock = 109,
    /// `MPI_Type_create_struct`.
    Struct = 110,
    /// `MPI_Type_create_subarray`.
    Subarray = 111,
    /// `MPI_Type_create_darray`.
    Darray = 112,
    /// `MPI_Type_create_f90_real`.
    F90Real = 113,
    /// `MPI_Type_create_f90_complex`.
    F90Complex = 114,
    /// `MPI_Type_create_f90_integer`.
    F90Integer = 115,
    /// `MPI_Type_create_resized`.
    Resized = 116,
}

/// The order of dimensions of an array, by ABI values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Order {
    /// The last index runs fastest.
    C = 12,
    /// The first index runs fastest.
    Fortran = 15,
}

impl Order {
    /// The order of an ABI value (`MPI_ORDER_C`, `MPI_ORDER_FORTRAN`); `None` for other values.
    pub fn from_value(value: i32) -> Option<Order> {
        [Order::C, Order::Fortran]
            .into_iter()
            .find(|order| *order as i32 == value)
    }
}
