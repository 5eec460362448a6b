//! Section 9.2: memory for communication; section 9.1.2: the hardware that the process is bound to.

use crate::args::Out;
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::Info;
use crate::info::InfoObject;
use crate::state::LIBRARY;
use std::ffi::c_void;

/// The alignment of allocated memory in bytes: a cache line, which is enough for any basic type.
const ALIGNMENT: usize = 64;
/// The info key by which a program requests a larger alignment (MPI 5.0 §9.2).
const ALIGNMENT_KEY: &[u8] = b"mpi_minimum_memory_alignment";

/// `MPI_Alloc_mem` (MPI 5.0, chapter 9).
pub fn alloc_mem(_: &Running, size: usize, info: Info, base: Out<*mut c_void>) -> Done {
    base.set(allocate(size, alignment(info)?)?);
    Ok(())
}

/// The alignment of memory for communication that the info object requests, in bytes: a power of
/// two.
pub(super) fn alignment(info: Info) -> Result<usize, Error> {
    let mut alignment = ALIGNMENT;
    if info != MPI_INFO_NULL
        && let Some(wanted) = LIBRARY.infos().get(info)?.get(ALIGNMENT_KEY)
    {
        let number = std::str::from_utf8(wanted)
            .ok()
            .and_then(|text| text.parse::<usize>().ok());
        let Some(number) = number.filter(|number| number.is_power_of_two()) else {
            let detail = format!(
                "mpi_minimum_memory_alignment is `{}`; valid is a power of two",
                String::from_utf8_lossy(wanted)
            );
            return Err(Error::new(MPI_ERR_INFO_VALUE, detail));
        };
        alignment = alignment.max(number);
    }
    Ok(alignment)
}

/// Allocates `size` bytes of memory for communication with this alignment.
pub(super) fn allocate(size: usize, alignment: usize) -> Result<*mut c_void, Error> {
    let mut memory = std::ptr::null_mut();
    // SAFETY: the alignment is a power of two and a multiple of a pointer's size; the result is
    // only used on success.
    let failed = unsafe { libc::posix_memalign(&mut memory, alignment, size.max(1)) } != 0;
    if failed {
        return Err(Error::new(
            MPI_ERR_NO_MEM,
            format!("there is no memory for {size} bytes"),
        ));
    }
    Ok(memory)
}

/// `MPI_Free_mem` (MPI 5.0, chapter 9).
///
/// # Safety
/// `base` came from `MPI_Alloc_mem` and is not used any more.
pub unsafe fn free_mem(_: &Running, base: *mut c_void) -> Done {
    // SAFETY: the caller promises that `base` came from `alloc_mem`; NULL is allowed.
    unsafe { release(base) };
    Ok(())
}

/// Releases memory of [`allocate`].
///
/// # Safety
/// `base` came from `allocate`, or is NULL, and is not used any more.
pub(super) unsafe fn release(base: *mut c_void) {
    // SAFETY: the caller promises that it came from the C library.
    unsafe { libc::free(base) };
}

/// `MPI_Get_hw_resource_info` (MPI 5.0, chapter 9). The library binds processes to no hardware;
/// they share the memory of the machine.
pub fn get_hw_resource_info(_: &Running, hw_info: Out<Info>) -> Done {
    let mut object = InfoObject::default();
    object.set(b"mpi_shared_memory", b"true");
    hw_info.set(LIBRARY.infos().insert(object)?);
    Ok(())
}
