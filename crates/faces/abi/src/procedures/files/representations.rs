//! Section 14.5.3: data representations that the program defines.

use crate::call_guard::Running;
use crate::callback::{self, DatarepConversionFunction as Function, DatarepExtent};
use crate::constants::{MPI_ERR_ARG, MPI_ERR_CONVERSION, MPI_MAX_DATAREP_STRING, MPI_SUCCESS};
use crate::error::{Done, Error};
use crate::handle::Datatype;
use mpi::file::{Conversion, RepresentationFunctions};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;

/// `MPI_Register_datarep` (MPI 5.0, chapter 14).
pub fn register_datarep(
    call: &Running,
    datarep: &CStr,
    read: Function,
    write: Function,
    extent: DatarepExtent,
    extra_state: *mut c_void,
) -> Done {
    let name = datarep.to_string_lossy();
    if name.is_empty() || name.len() >= MPI_MAX_DATAREP_STRING as usize {
        let most = MPI_MAX_DATAREP_STRING - 1;
        let detail = format!("the name has {} bytes; valid: 1 to {most}", name.len());
        return Err(Error::new(MPI_ERR_ARG, detail));
    }
    let functions = UserFunctions {
        read,
        write,
        extent,
        extra_state: extra_state.expose_provenance(),
    };
    call.rank
        .objects()
        .register_representation(&name, Arc::new(functions))
}

/// The user's functions of a representation, and the extra state that each of them gets.
struct UserFunctions {
    read: Function,
    write: Function,
    extent: DatarepExtent,
    extra_state: usize,
}

impl RepresentationFunctions for UserFunctions {
    fn extent(&self, basic: datatype::Predefined) -> Result<isize, Error> {
        let Some(function) = self.extent else {
            return Ok(basic.extent() as isize);
        };
        let mut extent = 0;
        let extra_state = with_exposed_provenance_mut(self.extra_state);
        // SAFETY: the user's function, called with the arguments of MPI 5.0 §14.5.3.
        let code = callback::run(|| unsafe {
            function(Datatype(basic.handle()), &raw mut extent, extra_state)
        });
        succeeded("extent", code)?;
        match extent {
            0.. => Ok(extent),
            _ => {
                let detail = format!("the extent function gave {extent}");
                Err(Error::new(MPI_ERR_CONVERSION, detail))
            }
        }
    }

    fn read(&self, conversion: Conversion<'_>) -> Option<Done> {
        self.convert("read", self.read, conversion)
    }

    fn write(&self, conversion: Conversion<'_>) -> Option<Done> {
        self.convert("write", self.write, conversion)
    }
}

impl UserFunctions {
    fn convert(&self, what: &str, function: Function, conversion: Conversion<'_>) -> Option<Done> {
        let extra_state = with_exposed_provenance_mut(self.extra_state);
        let memory = with_exposed_provenance_mut(conversion.memory.address);
        let datatype = Datatype::from(conversion.memory.handle);
        let (count, bytes) = (conversion.count, conversion.bytes.as_mut_ptr().cast());
        let code = match function {
            Function::Small(function) => {
                let function = function?;
                let Ok(count) = c_int::try_from(count) else {
                    let detail = format!("the {what} function takes no {count} elements");
                    return Some(Err(Error::new(MPI_ERR_CONVERSION, detail)));
                };
                // SAFETY: the user's function, called with the arguments of MPI 5.0 §14.5.3: the
                // memory of the access, and as many bytes as the extents of its elements need.
                callback::run(|| unsafe {
                    function(memory, datatype, count, bytes, 0, extra_state)
                })
            }
            Function::Large(function) => {
                let function = function?;
                // SAFETY: as above.
                callback::run(|| unsafe {
                    function(memory, datatype, count as i64, bytes, 0, extra_state)
                })
            }
        };
        Some(succeeded(what, code))
    }
}

/// Makes the error code of a user's function the error of the call.
fn succeeded(what: &str, code: c_int) -> Done {
    if code == MPI_SUCCESS {
        return Ok(());
    }
    let detail = format!("the {what} function of a data representation gave the error code {code}");
    Err(Error::new(MPI_ERR_CONVERSION, detail))
}
