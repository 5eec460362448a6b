//! A safe interface to a foreign MPI library that is opened at run time.
//!
//! All `unsafe` of this crate is in this module: it cannot be checked that a symbol has the
//! prototype that its name promises.
//!
//! Invariant: a path given to [`Mpi::open`] is trusted to be an MPI library of the standard ABI
//! (MPI 5.0, chapter 20). Buffers outlive the operations on them; nonblocking operations therefore
//! exist only inside [`Mpi::window`] and [`CollectiveCall`](collective::CollectiveCall), which owns
//! its buffers.

/// Makes a procedure of the library callable. The caller names the prototype of the standard ABI.
macro_rules! prototype {
    ($address:expr, $type:ty) => {{
        let address: Address = $address;
        // SAFETY: the standard ABI fixes the prototype behind the procedure's name.
        unsafe { std::mem::transmute::<Address, $type>(address) }
    }};
}

pub(crate) mod collective;
pub(crate) mod file;
pub(crate) mod signature;
mod topology;
pub(crate) mod window;

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

/// A handle of the ABI: a pointer, or one of the small constants.
type AbiHandle = usize;

/// The address of a procedure of the library. Its caller must know the prototype.
type Address = unsafe extern "C" fn();

const COMM_WORLD: AbiHandle = 0x101;
const SUM: AbiHandle = 0x21;
const INT: AbiHandle = 0x209;
const BYTE: AbiHandle = 0x247;
const ERRORS_RETURN: AbiHandle = 0x143;
const REQUEST_NULL: AbiHandle = 0x180;
const INFO_NULL: AbiHandle = 0x130;
const STATUS_IGNORE: *mut c_void = ptr::null_mut();
const MAX_ERROR_STRING: usize = 512;
const MAX_LIBRARY_VERSION_STRING: usize = 8192;

/// Makes a struct of function pointers from a list of C prototypes, and its constructor from a
/// library.
macro_rules! functions {
    ($($field:ident = $symbol:literal ( $($argument:ty),* );)*) => {
        struct Functions { $($field: unsafe extern "C" fn($($argument),*) -> c_int,)* }

        impl Functions {
            fn resolve(library: &Library) -> Result<Functions> {
                Ok(Functions { $(
                    // SAFETY: the standard ABI fixes the prototype behind each of these names, and
                    // the pointer is used no longer than `Mpi` keeps the library open.
                    $field: unsafe { *library.get(concat!($symbol, "\0"))
                        .with_context(|| format!("it has no {}", $symbol))? },
                )* })
            }
        }
    };
}

functions! {
    init = "MPI_Init" (*mut c_int, *mut *mut *mut c_char);
    finalize = "MPI_Finalize" ();
    abort = "MPI_Abort" (AbiHandle, c_int);
    rank = "MPI_Comm_rank" (AbiHandle, *mut c_int);
    size = "MPI_Comm_size" (AbiHandle, *mut c_int);
    set_errhandler = "MPI_Comm_set_errhandler" (AbiHandle, AbiHandle);
    error_string = "MPI_Error_string" (c_int, *mut c_char, *mut c_int);
    library_version = "MPI_Get_library_version" (*mut c_char, *mut c_int);
    send = "MPI_Send" (*const u8, c_int, AbiHandle, c_int, c_int, AbiHandle);
    recv = "MPI_Recv" (*mut u8, c_int, AbiHandle, c_int, c_int, AbiHandle, *mut c_void);
    isend = "MPI_Isend" (*const u8, c_int, AbiHandle, c_int, c_int, AbiHandle, *mut AbiHandle);
    irecv = "MPI_Irecv" (*mut u8, c_int, AbiHandle, c_int, c_int, AbiHandle, *mut AbiHandle);
    waitall = "MPI_Waitall" (c_int, *mut AbiHandle, *mut c_void);
    wait = "MPI_Wait" (*mut AbiHandle, *mut c_void);
    test = "MPI_Test" (*mut AbiHandle, *mut c_int, *mut c_void);
    start = "MPI_Start" (*mut AbiHandle);
    request_free = "MPI_Request_free" (*mut AbiHandle);
    comm_free = "MPI_Comm_free" (*mut AbiHandle);
    barrier = "MPI_Barrier" (AbiHandle);
    allreduce = "MPI_Allreduce" (*const i32, *mut i32, c_int, AbiHandle, AbiHandle, AbiHandle);
    alltoall = "MPI_Alltoall" (*const u8, c_int, AbiHandle, *mut u8, c_int, AbiHandle, AbiHandle);
    alltoallv = "MPI_Alltoallv" (*const u8, *const c_int, *const c_int, AbiHandle, *mut u8, *const c_int, *const c_int, AbiHandle, AbiHandle);
}

/// An open library. All operations use `MPI_COMM_WORLD`.
pub(crate) struct Mpi {
    call: Functions,
    wtime: unsafe extern "C" fn() -> f64,
    /// True if the clock is the library's MPI_Wtime instead of this process's clock.
    virtual_time: bool,
    opened: Instant,
    rank: usize,
    size: usize,
    path: PathBuf,
    // This field is the last one: the function pointers are dropped before the code to which they
    // point.
    library: Library,
}

impl Mpi {
    /// Opens the library and finds all procedures that the benchmarks need.
    pub(crate) fn open(path: &Path) -> Result<Mpi> {
        // RTLD_GLOBAL, because MPI libraries load plug-ins that use symbols of the library.
        // SAFETY: opening runs the library's constructors; the user named the path as that of an
        // MPI library.
        let library = unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_GLOBAL) }
            .with_context(|| format!("cannot open the MPI library {}", path.display()))?;
        let call = Functions::resolve(&library).with_context(|| {
            format!(
                "{} is not a library of the standard MPI ABI",
                path.display()
            )
        })?;
        // SAFETY: the standard ABI fixes this prototype too: no arguments, and a double as result.
        let wtime = unsafe { library.get(c"MPI_Wtime".to_bytes_with_nul()).map(|it| *it) };
        let wtime = wtime.context("it has no MPI_Wtime")?;
        Ok(Mpi {
            call,
            wtime,
            virtual_time: false,
            opened: Instant::now(),
            rank: 0,
            size: 1,
            path: path.into(),
            library,
        })
    }

    /// The address of a procedure that some libraries lack. An error if this library lacks it.
    fn procedure(&self, name: &str) -> Result<Address> {
        // SAFETY: the address is only called with the prototype that the standard ABI fixes for
        // the name, and no longer than the library is open.
        let found = unsafe { self.library.get(format!("{name}\0").as_bytes()) };
        found.map(|address| *address).with_context(|| {
            let path = self.path.display();
            format!(
                "{path} has no {name}: leave this library out, or choose another --form or benchmark"
            )
        })
    }

    /// Calls MPI_Init. From then on MPI errors are returned and do not end the process.
    pub(crate) fn init(&mut self) -> Result<()> {
        // SAFETY: MPI_Init takes null for both arguments (MPI 5.0, 11.2.1).
        let code = unsafe { (self.call.init)(ptr::null_mut(), ptr::null_mut()) };
        self.check("MPI_Init", code)?;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: constants of the ABI and pointers to two integers.
        unsafe {
            self.check(
                "MPI_Comm_set_errhandler",
                (self.call.set_errhandler)(COMM_WORLD, ERRORS_RETURN),
            )?;
            self.check("MPI_Comm_rank", (self.call.rank)(COMM_WORLD, &mut rank))?;
            self.check("MPI_Comm_size", (self.call.size)(COMM_WORLD, &mut size))?;
        }
        if rank < 0 || size <= rank {
            bail!("the library reports rank {rank} of {size} ranks");
        }
        (self.rank, self.size) = (rank as usize, size as usize);
        Ok(())
    }

    /// Calls MPI_Finalize.
    pub(crate) fn finalize(&self) -> Result<()> {
        // SAFETY: takes no arguments.
        self.check("MPI_Finalize", unsafe { (self.call.finalize)() })
    }

    /// Calls MPI_Abort, which ends the job. Returns only if the library is broken.
    pub(crate) fn abort(&self, code: i32) {
        // SAFETY: a constant of the ABI and an integer.
        unsafe { (self.call.abort)(COMM_WORLD, code) };
    }

    /// Makes MPI_Wtime the clock, for ranks on a modelled machine.
    pub(crate) fn keep_virtual_time(&mut self) {
        self.virtual_time = true;
    }

    /// The time since a fixed moment, in seconds, by this process's clock, which is the same for
    /// every library; in virtual time by MPI_Wtime.
    #[inline]
    pub(crate) fn seconds(&self) -> f64 {
        if self.virtual_time {
            // SAFETY: takes no arguments.
            unsafe { (self.wtime)() }
        } else {
            self.opened.elapsed().as_secs_f64()
        }
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The first line of the library's version string.
    pub(crate) fn version(&self) -> Result<String> {
        let mut text = [0u8; MAX_LIBRARY_VERSION_STRING];
        let mut length = 0;
        // SAFETY: the buffer has the length the ABI prescribes.
        let code = unsafe { (self.call.library_version)(text.as_mut_ptr().cast(), &mut length) };
        self.check("MPI_Get_library_version", code)?;
        Ok(first_line(&text))
    }

    #[inline]
    pub(crate) fn send(&self, buffer: &[u8], peer: usize, tag: i32) -> Result<()> {
        let count = buffer.len() as c_int;
        // SAFETY: a blocking call that reads the slice.
        let code = unsafe {
            (self.call.send)(buffer.as_ptr(), count, BYTE, peer as c_int, tag, COMM_WORLD)
        };
        self.check("MPI_Send", code)
    }

    #[inline]
    pub(crate) fn recv(&self, buffer: &mut [u8], peer: usize, tag: i32) -> Result<()> {
        let count = buffer.len() as c_int;
        // SAFETY: a blocking call that writes at most the slice.
        let code = unsafe {
            let at = buffer.as_mut_ptr();
            (self.call.recv)(
                at,
                count,
                BYTE,
                peer as c_int,
                tag,
                COMM_WORLD,
                STATUS_IGNORE,
            )
        };
        self.check("MPI_Recv", code)
    }

    /// Starts nonblocking operations and waits for all of them, even if starting one failed.
    #[inline]
    pub(crate) fn window<'b>(
        &self,
        handles: &mut Handles,
        post: impl FnOnce(&mut Window<'_, 'b>) -> Result<()>,
    ) -> Result<()> {
        handles.0.clear();
        let mut window = Window {
            mpi: self,
            handles: &mut handles.0,
            buffers: PhantomData,
        };
        let posted = post(&mut window);
        let requests = &mut handles.0;
        // SAFETY: the requests are from the library; statuses are ignored.
        let code = unsafe {
            (self.call.waitall)(
                requests.len() as c_int,
                requests.as_mut_ptr(),
                STATUS_IGNORE,
            )
        };
        posted.and(self.check("MPI_Waitall", code))
    }

    #[inline]
    pub(crate) fn barrier(&self) -> Result<()> {
        // SAFETY: a constant of the ABI.
        self.check("MPI_Barrier", unsafe { (self.call.barrier)(COMM_WORLD) })
    }

    /// Sums vectors of 32-bit integers over all ranks.
    #[inline]
    pub(crate) fn allreduce(&self, from: &[i32], to: &mut [i32]) -> Result<()> {
        assert_eq!(from.len(), to.len());
        let count = from.len() as c_int;
        // SAFETY: both slices have `count` elements; blocking.
        let code = unsafe {
            (self.call.allreduce)(from.as_ptr(), to.as_mut_ptr(), count, INT, SUM, COMM_WORLD)
        };
        self.check("MPI_Allreduce", code)
    }

    /// Exchanges blocks between all ranks; both slices contain one block for each rank.
    #[inline]
    pub(crate) fn alltoall(&self, from: &[u8], to: &mut [u8]) -> Result<()> {
        assert_eq!(from.len(), to.len());
        assert_eq!(from.len() % self.size, 0);
        let (count, at) = ((from.len() / self.size) as c_int, to.as_mut_ptr());
        // SAFETY: both slices have `size` blocks of `count` bytes; blocking.
        let code = unsafe {
            (self.call.alltoall)(from.as_ptr(), count, BYTE, at, count, BYTE, COMM_WORLD)
        };
        self.check("MPI_Alltoall", code)
    }

    /// Exchanges parts between all ranks. Parts are contiguous in `from` and `to`; their sizes in
    /// bytes, one for each rank, are in `to_each` and `of_each`.
    pub(crate) fn alltoallv(
        &self,
        from: &[u8],
        to_each: &[i32],
        to: &mut [u8],
        of_each: &[i32],
    ) -> Result<()> {
        let (sent, received) = (
            displacements(to_each, from.len()),
            displacements(of_each, to.len()),
        );
        assert_eq!((sent.len(), received.len()), (self.size, self.size));
        // SAFETY: each part lies within its slice, as `displacements` checks, and there is one for
        // each rank; blocking.
        let code = unsafe {
            (self.call.alltoallv)(
                from.as_ptr(),
                to_each.as_ptr(),
                sent.as_ptr(),
                BYTE,
                to.as_mut_ptr(),
                of_each.as_ptr(),
                received.as_ptr(),
                BYTE,
                COMM_WORLD,
            )
        };
        self.check("MPI_Alltoallv", code)
    }

    #[inline]
    fn check(&self, procedure: &str, code: c_int) -> Result<()> {
        if code == 0 {
            Ok(())
        } else {
            self.failed(procedure, code)
        }
    }

    #[cold]
    fn failed(&self, procedure: &str, code: c_int) -> Result<()> {
        let mut text = [0u8; MAX_ERROR_STRING];
        let mut length = 0;
        // SAFETY: the buffer has the length the ABI prescribes.
        let known =
            unsafe { (self.call.error_string)(code, text.as_mut_ptr().cast(), &mut length) };
        if known == 0 {
            bail!("{procedure} failed: {}", first_line(&text));
        }
        bail!("{procedure} failed with error {code}");
    }
}

/// The offsets of parts that lie one after the other. Panics if they exceed `room`.
fn displacements(parts: &[i32], room: usize) -> Vec<c_int> {
    let mut end: c_int = 0;
    let begins = parts.iter().map(|part| {
        assert!(*part >= 0);
        let begin = end;
        end = begin.checked_add(*part).expect("parts of less than 2 GiB");
        begin
    });
    let begins: Vec<c_int> = begins.collect();
    assert!(end as usize <= room);
    begins
}

/// The requests of a window; the allocation is reused for the next window.
#[derive(Default)]
pub(crate) struct Handles(Vec<AbiHandle>);

/// Nonblocking operations in progress, for which [`Mpi::window`] waits.
pub(crate) struct Window<'w, 'b> {
    mpi: &'w Mpi,
    handles: &'w mut Vec<AbiHandle>,
    buffers: PhantomData<&'b Cell<u8>>,
}

impl<'b> Window<'_, 'b> {
    #[inline]
    pub(crate) fn isend(&mut self, buffer: &'b [u8], peer: usize, tag: i32) -> Result<()> {
        let (mpi, count, mut request) = (self.mpi, buffer.len() as c_int, REQUEST_NULL);
        // SAFETY: the slice is borrowed for 'b, and `Mpi::window` waits before that ends.
        let code = unsafe {
            let at = buffer.as_ptr();
            (mpi.call.isend)(
                at,
                count,
                BYTE,
                peer as c_int,
                tag,
                COMM_WORLD,
                &mut request,
            )
        };
        mpi.check("MPI_Isend", code)?;
        self.handles.push(request);
        Ok(())
    }

    /// Starts a receive. The buffer consists of cells, because all receives of a window share it,
    /// as in the OSU procedure.
    #[inline]
    pub(crate) fn irecv(&mut self, buffer: &'b [Cell<u8>], peer: usize, tag: i32) -> Result<()> {
        let (mpi, count, mut request) = (self.mpi, buffer.len() as c_int, REQUEST_NULL);
        // SAFETY: the cells are borrowed for 'b, and `Mpi::window` waits before that ends; they
        // belong to this thread, which makes no access while it is inside MPI.
        let code = unsafe {
            let at = buffer.as_ptr().cast::<u8>().cast_mut();
            (mpi.call.irecv)(
                at,
                count,
                BYTE,
                peer as c_int,
                tag,
                COMM_WORLD,
                &mut request,
            )
        };
        mpi.check("MPI_Irecv", code)?;
        self.handles.push(request);
        Ok(())
    }
}

/// Makes the kernel send SIGTERM to the command's process when this process ends for any reason.
pub(crate) fn end_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec only prctl is called, which allocates nothing and takes no
    // lock.
    unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGTERM)?)) };
}

fn first_line(text: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(text).map_or(text, CStr::to_bytes);
    String::from_utf8_lossy(text)
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}
