//! Data representations (MPI 5.0 §14.5): the bytes of a value in a file.

use std::cell::RefCell;
use std::sync::Arc;

use datatype::{Buffer, Predefined, Type, external32};

use crate::{Class, Error, Result};

/// The representation of data in a file.
#[derive(Clone)]
pub(crate) enum Representation {
    /// `native`: data in the file are as in memory.
    Native,
    /// `internal`: as in memory too, since there is one implementation and one kind of machine.
    Internal,
    /// `external32`: the portable representation.
    External32,
    /// A representation that the program has registered, with its name.
    Registered(String, Arc<dyn RepresentationFunctions>),
}

/// The user's memory of an access to a file, and the datatype by which it is described.
#[derive(Clone)]
pub struct FileMemory {
    /// The user's memory for the access.
    pub buffer: Buffer,
    /// The datatype of the elements in memory.
    pub ty: Type,
    /// The number of elements that are accessed.
    pub count: usize,
    /// The address of the memory, which functions of the user get.
    pub address: usize,
    /// The handle of the datatype, which functions of the user get.
    pub handle: u32,
}

/// A conversion of elements between memory and the bytes of a file.
pub struct Conversion<'a> {
    /// The user's memory of the elements.
    pub memory: &'a FileMemory,
    /// The number of elements that are converted.
    pub count: usize,
    /// The bytes of the converted elements in the file.
    pub bytes: &'a mut [u8],
}

/// The functions of a registered representation. They run on the thread of the call.
pub trait RepresentationFunctions: Send + Sync {
    /// Bytes of an element of a predefined type in a file.
    ///
    /// # Errors
    /// The user's function failed.
    fn extent(&self, basic: Predefined) -> Result<isize>;

    /// Converts from the file's bytes to memory. `None`: bytes in the file are as in memory.
    fn read(&self, conversion: Conversion<'_>) -> Option<Result<()>>;

    /// Converts from memory to the file's bytes. `None`: bytes in the file are as in memory.
    fn write(&self, conversion: Conversion<'_>) -> Option<Result<()>>;
}

impl Representation {
    /// The name of the representation.
    pub(crate) fn name(&self) -> &str {
        match self {
            Representation::Native => "native",
            Representation::Internal => "internal",
            Representation::External32 => "external32",
            Representation::Registered(name, _) => name,
        }
    }

    /// True if data in the file are as in memory.
    pub(crate) fn is_native(&self) -> bool {
        matches!(self, Representation::Native | Representation::Internal)
    }

    /// A datatype whose layout in memory is that of `ty` in a file.
    pub(crate) fn layout(&self, ty: &Type) -> Result<Type> {
        match self {
            Representation::Native | Representation::Internal => Ok(ty.clone()),
            Representation::External32 => Ok(file_io::external::layout(ty)?),
            Representation::Registered(_, functions) => {
                let failed = RefCell::new(None);
                let layout = ty.rebuilt(&|basic| {
                    let extent = functions.extent(basic).unwrap_or_else(|error| {
                        *failed.borrow_mut() = Some(error);
                        0
                    });
                    Type::contiguous(extent as i64, &Predefined::BYTE.into())
                });
                match failed.into_inner() {
                    Some(error) => Err(error),
                    None => Ok(layout?),
                }
            }
        }
    }

    /// Converts the user's elements to bytes of a file. `into` has the length of those bytes.
    pub(crate) fn encode(&self, memory: &FileMemory, into: &mut [u8]) -> Result<()> {
        match self {
            Representation::Native | Representation::Internal => {
                memory.buffer.pack(0, into);
            }
            Representation::External32 => {
                external32::pack(&memory.ty, &memory.buffer, into).map_err(conversion)?;
            }
            Representation::Registered(_, functions) => {
                let conversion = Conversion {
                    memory,
                    count: memory.count,
                    bytes: &mut *into,
                };
                match functions.write(conversion) {
                    Some(result) => result?,
                    None => _ = memory.buffer.pack(0, into),
                }
            }
        }
        Ok(())
    }

    /// Converts bytes of a file to as many of the user's elements as they contain completely.
    /// Returns the number of bytes of these elements in memory.
    pub(crate) fn decode(&self, from: &mut [u8], memory: &FileMemory) -> Result<u64> {
        match self {
            Representation::Native | Representation::Internal => {
                Ok(memory.buffer.unpack(0, from) as u64)
            }
            Representation::External32 => {
                let bytes = external32::unpack_some(&memory.ty, from, &memory.buffer);
                Ok(bytes.map_err(conversion)? as u64)
            }
            Representation::Registered(_, functions) => {
                let each = file_bytes(self, &memory.ty, 1)?;
                let count = (from.len() as u64).checked_div(each).unwrap_or(0) as usize;
                let bytes = count * memory.ty.size();
                let conversion = Conversion {
                    memory,
                    count,
                    bytes: &mut *from,
                };
                match functions.read(conversion) {
                    Some(result) => result.map(|()| bytes as u64),
                    None => Ok(memory.buffer.unpack(0, from) as u64),
                }
            }
        }
    }
}

/// The number of bytes in a file of `count` elements of a datatype.
pub(crate) fn file_bytes(representation: &Representation, ty: &Type, count: usize) -> Result<u64> {
    let size = match representation.is_native() {
        true => ty.size(),
        false => representation.layout(ty)?.size(),
    };
    let bytes = size.checked_mul(count).map(|bytes| bytes as u64);
    bytes.ok_or_else(|| {
        let detail = format!("{count} elements of {size} bytes are more than any file holds");
        Error::new(Class::COUNT, detail)
    })
}

#[cold]
fn conversion(error: datatype::Error) -> Error {
    Error::new(Class::CONVERSION, error.to_string())
}
