//! The predefined datatypes of the standard ABI (MPI 5.0, chapter 20), with the sizes that C and
//! gfortran give them on 64-bit Linux.
//!
//! A `Predefined` always holds the ABI value of a datatype named in the table below; the null
//! datatype is not one of them. Optional types that are not supported have no size.

use std::fmt;

/// One predefined datatype, held as its ABI value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Predefined(u16);

/// The class of a datatype, which decides the predefined operations that apply to it (MPI 5.0,
/// section 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Signed or unsigned integers of C.
    CInteger,
    /// INTEGER and INTEGERn of Fortran.
    FortranInteger,
    /// Floating-point numbers of C and Fortran.
    FloatingPoint,
    /// Complex numbers of C, C++ and Fortran.
    Complex,
    /// Fortran LOGICAL, and the bool of C and C++.
    Logical,
    /// MPI_BYTE: uninterpreted bytes.
    Byte,
    /// AINT, OFFSET and COUNT: integers that C and Fortran share.
    MultiLanguage,
    /// Printable characters: CHAR, WCHAR, CHARACTER.
    Character,
    /// A value and an index, for MINLOC and MAXLOC.
    Pair,
    /// MPI_PACKED: the output of MPI_Pack.
    Packed,
}

/// The format of one element in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    /// C's long double: 80 bits of x87 in 16 bytes on x86-64, IEEE binary128 on aarch64.
    LongDouble,
    ComplexF32,
    ComplexF64,
    ComplexLongDouble,
    F32I32,
    F64I32,
    I64I32,
    I32I32,
    I16I32,
    LongDoubleI32,
    F32F32,
    F64F64,
    Unsupported,
}

pub(crate) struct Entry {
    handle: u16,
    name: &'static str,
    class: Class,
    format: Format,
}

macro_rules! table {
    ($($id:ident = $handle:literal $name:literal $class:ident $format:ident;)*) => {
        impl Predefined {
            $(#[doc = concat!("`", $name, "`")] pub const $id: Predefined = Predefined($handle);)*
        }
        pub(crate) const TABLE: &[Entry] = &[
            $(Entry { handle: $handle, name: $name, class: Class::$class, format: Format::$format },)*
        ];
    };
}

table! {
    AINT                  = 0x201 "MPI_AINT"                    MultiLanguage  I64;
    COUNT                 = 0x202 "MPI_COUNT"                   MultiLanguage  I64;
    OFFSET                = 0x203 "MPI_OFFSET"                  MultiLanguage  I64;
    PACKED                = 0x207 "MPI_PACKED"                  Packed         U8;
    SHORT                 = 0x208 "MPI_SHORT"                   CInteger       I16;
    INT                   = 0x209 "MPI_INT"                     CInteger       I32;
    LONG                  = 0x20a "MPI_LONG"                    CInteger       I64;
    LONG_LONG_INT         = 0x20b "MPI_LONG_LONG_INT"           CInteger       I64;
    UNSIGNED_SHORT        = 0x20c "MPI_UNSIGNED_SHORT"          CInteger       U16;
    UNSIGNED              = 0x20d "MPI_UNSIGNED"                CInteger       U32;
    UNSIGNED_LONG         = 0x20e "MPI_UNSIGNED_LONG"           CInteger       U64;
    UNSIGNED_LONG_LONG    = 0x20f "MPI_UNSIGNED_LONG_LONG"      CInteger       U64;
    FLOAT                 = 0x210 "MPI_FLOAT"                   FloatingPoint  F32;
    C_FLOAT_COMPLEX       = 0x212 "MPI_C_FLOAT_COMPLEX"         Complex        ComplexF32;
    CXX_FLOAT_COMPLEX     = 0x213 "MPI_CXX_FLOAT_COMPLEX"       Complex        ComplexF32;
    DOUBLE                = 0x214 "MPI_DOUBLE"                  FloatingPoint  F64;
    C_DOUBLE_COMPLEX      = 0x216 "MPI_C_DOUBLE_COMPLEX"        Complex        ComplexF64;
    CXX_DOUBLE_COMPLEX    = 0x217 "MPI_CXX_DOUBLE_COMPLEX"      Complex        ComplexF64;
    LOGICAL               = 0x218 "MPI_LOGICAL"                 Logical        I32;
    INTEGER               = 0x219 "MPI_INTEGER"                 FortranInteger I32;
    REAL                  = 0x21a "MPI_REAL"                    FloatingPoint  F32;
    COMPLEX               = 0x21b "MPI_COMPLEX"                 Complex        ComplexF32;
    DOUBLE_PRECISION      = 0x21c "MPI_DOUBLE_PRECISION"        FloatingPoint  F64;
    DOUBLE_COMPLEX        = 0x21d "MPI_DOUBLE_COMPLEX"          Complex        ComplexF64;
    CHARACTER             = 0x21e "MPI_CHARACTER"               Character      I8;
    LONG_DOUBLE           = 0x220 "MPI_LONG_DOUBLE"             FloatingPoint  LongDouble;
    C_LONG_DOUBLE_COMPLEX = 0x224 "MPI_C_LONG_DOUBLE_COMPLEX"   Complex        ComplexLongDouble;
    CXX_LONG_DOUBLE_COMPLEX = 0x225 "MPI_CXX_LONG_DOUBLE_COMPLEX" Complex      ComplexLongDouble;
    FLOAT_INT             = 0x228 "MPI_FLOAT_INT"               Pair           F32I32;
    DOUBLE_INT            = 0x229 "MPI_DOUBLE_INT"              Pair           F64I32;
    LONG_INT              = 0x22a "MPI_LONG_INT"                Pair           I64I32;
    TWO_INT               = 0x22b "MPI_2INT"                    Pair           I32I32;
    SHORT_INT             = 0x22c "MPI_SHORT_INT"               Pair           I16I32;
    LONG_DOUBLE_INT       = 0x22d "MPI_LONG_DOUBLE_INT"         Pair           LongDoubleI32;
    TWO_REAL              = 0x230 "MPI_2REAL"                   Pair           F32F32;
    TWO_DOUBLE_PRECISION  = 0x231 "MPI_2DOUBLE_PRECISION"       Pair           F64F64;
    TWO_INTEGER           = 0x232 "MPI_2INTEGER"                Pair           I32I32;
    C_BOOL                = 0x238 "MPI_C_BOOL"                  Logical        U8;
    CXX_BOOL              = 0x239 "MPI_CXX_BOOL"                Logical        U8;
    WCHAR                 = 0x23c "MPI_WCHAR"                   Character      I32;
    INT8_T                = 0x240 "MPI_INT8_T"                  CInteger       I8;
    UINT8_T               = 0x241 "MPI_UINT8_T"                 CInteger       U8;
    CHAR                  = 0x243 "MPI_CHAR"                    Character      I8;
    SIGNED_CHAR           = 0x244 "MPI_SIGNED_CHAR"             CInteger       I8;
    UNSIGNED_CHAR         = 0x245 "MPI_UNSIGNED_CHAR"           CInteger       U8;
    BYTE                  = 0x247 "MPI_BYTE"                    Byte           U8;
    INT16_T               = 0x248 "MPI_INT16_T"                 CInteger       I16;
    UINT16_T              = 0x249 "MPI_UINT16_T"                CInteger       U16;
    INT32_T               = 0x250 "MPI_INT32_T"                 CInteger       I32;
    UINT32_T              = 0x251 "MPI_UINT32_T"                CInteger       U32;
    INT64_T               = 0x258 "MPI_INT64_T"                 CInteger       I64;
    UINT64_T              = 0x259 "MPI_UINT64_T"                CInteger       U64;
    LOGICAL1              = 0x2c0 "MPI_LOGICAL1"                Logical        I8;
    INTEGER1              = 0x2c1 "MPI_INTEGER1"                FortranInteger I8;
    LOGICAL2              = 0x2c8 "MPI_LOGICAL2"                Logical        I16;
    INTEGER2              = 0x2c9 "MPI_INTEGER2"                FortranInteger I16;
    REAL2                 = 0x2ca "MPI_REAL2"                   FloatingPoint  Unsupported;
    LOGICAL4              = 0x2d0 "MPI_LOGICAL4"                Logical        I32;
    INTEGER4              = 0x2d1 "MPI_INTEGER4"                FortranInteger I32;
    REAL4                 = 0x2d2 "MPI_REAL4"                   FloatingPoint  F32;
    COMPLEX4              = 0x2d3 "MPI_COMPLEX4"                Complex        Unsupported;
    LOGICAL8              = 0x2d8 "MPI_LOGICAL8"                Logical        I64;
    INTEGER8              = 0x2d9 "MPI_INTEGER8"                FortranInteger I64;
    REAL8                 = 0x2da "MPI_REAL8"                   FloatingPoint  F64;
    COMPLEX8              = 0x2db "MPI_COMPLEX8"                Complex        ComplexF32;
    LOGICAL16             = 0x2e0 "MPI_LOGICAL16"               Logical        I128;
    INTEGER16             = 0x2e1 "MPI_INTEGER16"               FortranInteger I128;
    REAL16                = 0x2e2 "MPI_REAL16"                  FloatingPoint  Unsupported;
    COMPLEX16             = 0x2e3 "MPI_COMPLEX16"               Complex        ComplexF64;
    COMPLEX32             = 0x2eb "MPI_COMPLEX32"               Complex        Unsupported;
}

// The table above assumes that C's long and pointers have 64 bits.
const _: () = assert!(size_of::<std::ffi::c_long>() == 8 && size_of::<usize>() == 8);

const FIRST: u16 = 0x200;
const NONE: u8 = u8::MAX;

/// The row of each type in the table, indexed by the low byte of the type's handle.
const INDEX: [u8; 256] = {
    let mut index = [NONE; 256];
    let mut i = 0;
    while i < TABLE.len() {
        index[(TABLE[i].handle - FIRST) as usize] = i as u8;
        i += 1;
    }
    index
};

/// Size and extent of each type in bytes, indexed by the low byte of its handle; 0 if it is not
/// supported.
static SIZES: [[u8; 2]; 256] = {
    let mut sizes = [[0; 2]; 256];
    let mut i = 0;
    while i < TABLE.len() {
        let format = TABLE[i].format;
        sizes[(TABLE[i].handle - FIRST) as usize] = [format.size() as u8, format.extent() as u8];
        i += 1;
    }
    sizes
};

/// The size in bytes of each type without gaps, otherwise 0, indexed by the low byte of its handle,
/// so that a send reads one byte.
static DENSE: [u8; 256] = {
    let mut dense = [0; 256];
    let mut i = 0;
    while i < dense.len() {
        let [size, extent] = SIZES[i];
        dense[i] = if size == extent { size } else { 0 };
        i += 1;
    }
    dense
};

/// The datatype, class and format of a row of the table.
pub(crate) const fn row(index: usize) -> (Predefined, Class, Format) {
    let Entry {
        handle,
        class,
        format,
        ..
    } = TABLE[index];
    (Predefined(handle), class, format)
}

impl Predefined {
    /// The size of a handle's predefined datatype. `None`: the handle has none, or it is not
    /// supported, or its elements have gaps.
    #[inline(always)]
    pub fn dense_size(handle: usize) -> Option<usize> {
        match *DENSE.get(handle.wrapping_sub(FIRST as usize))? {
            0 => None,
            size => Some(size as usize),
        }
    }

    /// The predefined datatype with an ABI handle; `None` if no type has it.
    pub fn from_handle(handle: usize) -> Option<Predefined> {
        let low = handle.checked_sub(FIRST as usize)?;
        (low < 256 && INDEX[low] != NONE).then_some(Predefined(handle as u16))
    }

    /// Every predefined datatype in the order of handles, unsupported optional ones included.
    pub fn all() -> impl Iterator<Item = Predefined> {
        TABLE.iter().map(|entry| Predefined(entry.handle))
    }

    /// The low byte of the handle, which is unique among predefined datatypes.
    #[inline]
    pub(crate) const fn low_byte(self) -> usize {
        (self.0 & 0xff) as usize
    }

    /// The ABI handle of the type.
    pub fn handle(self) -> usize {
        self.0 as usize
    }

    /// The name of the type in the standard, such as `MPI_INT`.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The number of bytes of data in one element; `None` for an optional type that is not
    /// supported.
    #[inline]
    pub fn size(self) -> Option<usize> {
        match self.bytes() {
            0 => None,
            bytes => Some(bytes),
        }
    }

    /// The distance in bytes between two elements of an array: the size, except for pairs that C
    /// pads.
    #[inline]
    pub fn extent(self) -> usize {
        SIZES[(self.0 & 0xff) as usize][1] as usize
    }

    /// The alignment of a member of this type in a structure of C or Fortran.
    pub fn alignment(self) -> usize {
        self.format().alignment()
    }

    /// The class of the type, which decides the predefined operations that apply.
    pub fn class(self) -> Class {
        self.entry().class
    }

    /// True if the type is a signed integer type.
    pub fn is_signed(self) -> bool {
        use Format::*;
        matches!(self.format(), I8 | I16 | I32 | I64 | I128)
    }

    /// The formats of value and index, if the type is a pair.
    pub(crate) fn pair(self) -> Option<(Format, Format)> {
        self.format().pair()
    }

    /// The offset in bytes of the index in C's structure, if the type is a pair.
    pub(crate) fn index_offset(self) -> Option<usize> {
        let (value, index) = self.pair()?;
        Some(value.size().next_multiple_of(index.alignment()))
    }

    /// The named pair of this value and index, if the standard has one (MPI_Type_get_value_index).
    pub fn value_index(value: Predefined, index: Predefined) -> Option<Predefined> {
        match (value, index) {
            (Self::FLOAT, Self::INT) => Some(Self::FLOAT_INT),
            (Self::DOUBLE, Self::INT) => Some(Self::DOUBLE_INT),
            (Self::LONG, Self::INT) => Some(Self::LONG_INT),
            (Self::INT, Self::INT) => Some(Self::TWO_INT),
            (Self::SHORT, Self::INT) => Some(Self::SHORT_INT),
            (Self::LONG_DOUBLE, Self::INT) => Some(Self::LONG_DOUBLE_INT),
            (Self::REAL, Self::REAL) => Some(Self::TWO_REAL),
            (Self::DOUBLE_PRECISION, Self::DOUBLE_PRECISION) => Some(Self::TWO_DOUBLE_PRECISION),
            (Self::INTEGER, Self::INTEGER) => Some(Self::TWO_INTEGER),
            _ => None,
        }
    }

    /// True if the type is an integer of 8 bytes.
    #[inline]
    pub fn is_word(self) -> bool {
        matches!(self.format(), Format::I64 | Format::U64)
    }

    /// The size in bytes, or 0 for an optional type that is not supported.
    #[inline]
    pub(crate) fn bytes(self) -> usize {
        SIZES[(self.0 & 0xff) as usize][0] as usize
    }

    #[inline]
    pub(crate) fn format(self) -> Format {
        self.entry().format
    }

    #[inline]
    fn entry(self) -> &'static Entry {
        &TABLE[INDEX[(self.0 & 0xff) as usize] as usize]
    }
}

impl Format {
    /// The number of bytes of data in one element.
    pub(crate) const fn size(self) -> usize {
        use Format::*;
        match self {
            I8 | U8 => 1,
            I16 | U16 => 2,
            I32 | U32 | F32 => 4,
            I64 | U64 | F64 | ComplexF32 | F32I32 | I32I32 | F32F32 => 8,
            I128 | LongDouble | ComplexF64 | F64F64 => 16,
            ComplexLongDouble => 32,
            F64I32 | I64I32 => 12,
            I16I32 => 6,
            LongDoubleI32 => 20,
            Unsupported => 0,
        }
    }

    pub(crate) const fn alignment(self) -> usize {
        use Format::*;
        match self {
            I8 | U8 | Unsupported => 1,
            I16 | U16 => 2,
            I32 | U32 | F32 | ComplexF32 | F32I32 | I32I32 | I16I32 | F32F32 => 4,
            I64 | U64 | F64 | ComplexF64 | F64I32 | I64I32 | F64F64 => 8,
            I128 | LongDouble | ComplexLongDouble | LongDoubleI32 => 16,
        }
    }

    pub(crate) const fn pair(self) -> Option<(Format, Format)> {
        use Format::*;
        match self {
            F32I32 => Some((F32, I32)),
            F64I32 => Some((F64, I32)),
            I64I32 => Some((I64, I32)),
            I32I32 => Some((I32, I32)),
            I16I32 => Some((I16, I32)),
            LongDoubleI32 => Some((LongDouble, I32)),
            F32F32 => Some((F32, F32)),
            F64F64 => Some((F64, F64)),
            _ => None,
        }
    }

    /// The extent in bytes: for a pair that of C's structure, otherwise the size.
    const fn extent(self) -> usize {
        match self.pair() {
            Some((value, index)) => {
                let members = value.size().next_multiple_of(index.alignment()) + index.size();
                members.next_multiple_of(self.alignment())
            }
            None => self.size(),
        }
    }
}

impl fmt::Debug for Predefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_go_there_and_back() {
        assert_eq!(Predefined::all().count(), 70);
        for ty in Predefined::all() {
            assert_eq!(Predefined::from_handle(ty.handle()), Some(ty));
        }
        for handle in [0, 0x200, 0x1ff, 0x204, 0x2ff, 0x300, usize::MAX] {
            assert_eq!(Predefined::from_handle(handle), None, "{handle:#x}");
        }
    }

    /// The handle of a fixed-size type contains the size of the type; the table must agree.
    #[test]
    fn sizes_agree_with_the_bits_of_the_handle() {
        for ty in Predefined::all().filter(|ty| ty.handle() >= 0x240) {
            let coded = 1 << (ty.handle() >> 3 & 7);
            assert!(
                matches!(ty.size(), None | Some(_) if ty.size().is_none_or(|s| s == coded)),
                "{ty:?}"
            );
        }
    }

    #[test]
    fn pairs_are_laid_out_as_in_c() {
        let facts = [
            (Predefined::FLOAT_INT, 8, 8, 4),
            (Predefined::DOUBLE_INT, 12, 16, 8),
            (Predefined::LONG_INT, 12, 16, 8),
            (Predefined::TWO_INT, 8, 8, 4),
            (Predefined::SHORT_INT, 6, 8, 4),
            (Predefined::LONG_DOUBLE_INT, 20, 32, 16),
            (Predefined::TWO_REAL, 8, 8, 4),
            (Predefined::TWO_DOUBLE_PRECISION, 16, 16, 8),
            (Predefined::TWO_INTEGER, 8, 8, 4),
        ];
        for (ty, size, extent, index) in facts {
            assert_eq!(
                (ty.size(), ty.extent(), ty.index_offset()),
                (Some(size), extent, Some(index)),
                "{ty:?}"
            );
        }
        assert_eq!(
            facts.len(),
            Predefined::all()
                .filter(|ty| ty.class() == Class::Pair)
                .count()
        );
    }
}
