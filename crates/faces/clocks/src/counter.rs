//! The processor's time-stamp counter (`rdtsc`), which programs read without a system call. While
//! MPI runs, the kernel refuses the instruction to the threads of a rank (PR_SET_TSC), and the
//! handler of the signal returns the time of the process instead, as a counter of 1 GHz.
//!
//! The kernel's own code in the process that reads clocks (vdso) uses the instruction too, and
//! still gets the real counter. A signal with another cause is passed to the handler of the program
//! ([`program`]).
//!
//! A new program would inherit the refusal without the handler. So a child after `fork` gets the
//! real counter, and functions that start another program restore it first ([`super::starts`]).

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use libc::{sigaction, siginfo_t};

#[cfg(target_arch = "x86_64")]
use crate::process_time::now;
use crate::program_handler as program;
use crate::real::call;

/// True once the handler is installed.
static IS_IN_PLACE: AtomicBool = AtomicBool::new(false);
/// The first address of the kernel's code in the process, and the first address behind it.
static KERNEL_CODE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Makes the counter of this thread, and of threads that it will start, show the time of the
/// process from now on.
pub(crate) fn follow() {
    let [from, to] = kernel_code();
    KERNEL_CODE[0].store(from, Ordering::Relaxed);
    KERNEL_CODE[1].store(to, Ordering::Relaxed);
    if !IS_IN_PLACE.swap(true, Ordering::Relaxed) {
        let own = own_action();
        // SAFETY: a structure of numbers.
        let mut before: sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: both point to structures, and the handler is async-signal-safe.
        let set = call!(sigaction: fn(c_int, *const sigaction, *mut sigaction) -> c_int,
            libc::SIGSEGV, &raw const own, &raw mut before);
        if set != Some(0) {
            IS_IN_PLACE.store(false, Ordering::Relaxed);
            return;
        }
        program::set(&before);
    }
    refuse(true);
}

/// Restores the processor's counter for this thread. The handler stays for other threads.
pub(crate) fn leave() {
    refuse(false);
}

/// True if our handler of SIGSEGV is installed, and passes other faults to the program's.
pub(crate) fn is_in_place() -> bool {
    IS_IN_PLACE.load(Ordering::Relaxed)
}

/// Restores the processor's counter for this thread. Returns true if it was refused.
pub(crate) fn give_back() -> bool {
    let mut mode: c_int = 0;
    // SAFETY: the argument points to a local variable.
    let asked = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    let was_refused = asked == 0 && mode == libc::PR_TSC_SIGSEGV;
    if was_refused {
        refuse(false);
    }
    was_refused
}

/// Runs `act`, which may start another program, with the processor's counter.
pub(crate) fn given_back<R>(act: impl FnOnce() -> R) -> R {
    if !give_back() {
        return act();
    }
    let result = act();
    let error = std::io::Error::last_os_error();
    refuse(true);
    if let Some(number) = error.raw_os_error() {
        // SAFETY: the address is that of this thread's error number.
        unsafe { *libc::__errno_location() = number };
    }
    result
}

/// Denies this thread the processor's counter, or grants it.
fn refuse(is_refused: bool) {
    let mode = match is_refused {
        true => libc::PR_TSC_SIGSEGV,
        false => libc::PR_TSC_ENABLE,
    };
    // SAFETY: the arguments are numbers. Other processors have no such setting.
    unsafe { libc::prctl(libc::PR_SET_TSC, mode) };
}

fn own_action() -> sigaction {
    // SAFETY: a structure of numbers.
    let mut action: sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_fault as *const () as usize;
    // `SA_ONSTACK` covers a handler of the program that needs a stack of its own. `SA_NODEFER`: a
    // fault within the program's handler may be another read of the counter.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    action
}

/// Handles SIGSEGV: emulates the instruction that reads the counter.
unsafe extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the state of the interrupted thread.
    let is_counter = unsafe { answer(info, context) };
    if !is_counter {
        // SAFETY: the arguments are the kernel's.
        unsafe { program::handle(signal, info, context) };
    }
}

/// If the fault is an instruction that reads the counter, gives it the time. Returns false if the
/// fault has another cause.
///
/// # Safety
/// The arguments are those that the kernel passes to a handler.
#[cfg(target_arch = "x86_64")]
unsafe fn answer(info: *mut siginfo_t, context: *mut c_void) -> bool {
    const RDTSC: [u8; 2] = [0x0f, 0x31];
    const RDTSCP: [u8; 3] = [0x0f, 0x01, 0xf9];
    // A refused instruction is a general protection fault, which has no address.
    // SAFETY: as this function demands.
    let (code, context) = unsafe { ((*info).si_code, &mut *context.cast::<libc::ucontext_t>()) };
    const SI_KERNEL: c_int = 0x80;
    if code != SI_KERNEL {
        return false;
    }
    let registers = &mut context.uc_mcontext.gregs;
    let at = registers[libc::REG_RIP as usize];
    // SAFETY: the instruction at this address has just been read by the processor. Its last byte
    // may be the last one of a page, so the third is read only if the second fits.
    let len = unsafe {
        let byte = |offset: usize| *(at as *const u8).add(offset);
        match [byte(0), byte(1)] {
            RDTSC => RDTSC.len(),
            two if two == RDTSCP[..2] && byte(2) == RDTSCP[2] => RDTSCP.len(),
            _ => return false,
        }
    };
    let code = at as usize;
    let [from, to] = [0, 1].map(|end| KERNEL_CODE[end].load(Ordering::Relaxed));
    let time = match (from..to).contains(&code) {
        true => real_counter(),
        false => keeping_errno(now),
    };
    registers[libc::REG_RIP as usize] = at + len as i64;
    registers[libc::REG_RAX as usize] = i64::from(time as u32);
    registers[libc::REG_RDX as usize] = (time >> 32) as i64;
    if len == RDTSCP.len() {
        // The number of the processor is 0, as on a machine with one processor.
        registers[libc::REG_RCX as usize] = 0;
    }
    true
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn answer(_info: *mut siginfo_t, _context: *mut c_void) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn real_counter() -> u64 {
    refuse(false);
    // SAFETY: every processor of this architecture has the instruction.
    let time = unsafe { std::arch::x86_64::_rdtsc() };
    refuse(true);
    time
}

#[cfg(target_arch = "x86_64")]
fn keeping_errno<R>(act: impl FnOnce() -> R) -> R {
    // SAFETY: the address is that of this thread's error number.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *place };
    let result = act();
    // SAFETY: as above.
    unsafe { *place = before };
    result
}

/// The range of the addresses of the kernel's code in the process; zeros if there is none.
fn kernel_code() -> [usize; 2] {
    // SAFETY: the function has no conditions.
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    if start == 0 {
        return [0, 0];
    }
    // SAFETY: the kernel has mapped an ELF file there, with its program headers.
    let end = unsafe {
        let header = &*(start as *const libc::Elf64_Ehdr);
        let segments = (start + header.e_phoff as usize) as *const libc::Elf64_Phdr;
        let all = (0..usize::from(header.e_phnum)).map(|at| &*segments.add(at));
        let loaded = all.filter(|segment| segment.p_type == libc::PT_LOAD);
        loaded
            .map(|segment| (segment.p_vaddr + segment.p_memsz) as usize)
            .max()
    };
    [start, start + end.unwrap_or(0)]
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use std::arch::x86_64::{__rdtscp, _rdtsc};

    /// All in one test, because the process has one handler.
    #[test]
    fn the_counter_shows_the_time_of_the_process_and_other_faults_go_on() {
        static FAULTS: AtomicUsize = AtomicUsize::new(0);
        unsafe extern "C" fn count(_signal: c_int, _info: *mut siginfo_t, context: *mut c_void) {
            FAULTS.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the context is the kernel's; the access below is an instruction of two bytes.
            unsafe {
                (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] += 2
            };
        }
        // SAFETY: every processor of this architecture has the instruction.
        let read = || unsafe { _rdtsc() };
        let before = now();
        follow();
        let [one, other] = [read(), read()];
        let mut number = 7;
        // SAFETY: as above.
        let third = unsafe { __rdtscp(&raw mut number) };
        assert!(before < one && one < other && other < third && third <= now());
        assert_eq!(number, 0);
        // The kernel's code reads the real counter.
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_micros(50) {}
        let another = given_back(read);
        assert!(another > third);
        // A handler that the program sets meanwhile gets other faults.
        // SAFETY: a structure of numbers.
        let mut action: sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = count as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        program::set(&action);
        // SAFETY: the fault is expected, and the handler continues after the instruction, which has
        // two bytes.
        unsafe { std::arch::asm!("mov al, [rcx]", in("rcx") 8usize, out("al") _) };
        assert_eq!(FAULTS.load(Ordering::Relaxed), 1);
        assert!(read() > third && is_in_place());
        leave();
        assert!(read() > another);
    }
}
