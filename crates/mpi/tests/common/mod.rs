//! Ranks as threads of one process: each has a `Rank` of its own, over real shared memory.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Once};

use channel::Peers;
use datatype::reduce::Function;
use datatype::{Buffer, Elements, Predefined, Type};
use device::{Node, Placement};
use mpi::op::Operation;
use mpi::{Rank, Wiring};
use pmi::{Hosts, Standalone};
use testdevice::strict::{self, Setup};

/// Runs `program` on `size` ranks with these settings, over shared memory and over RDMA; where the settings speak of RDMA,
/// over devices that are as awkward as devices can be. Panics of a rank are the test's.
pub fn run_with(
    size: usize,
    settings: &[(&str, &str)],
    program: impl Fn(&Arc<Rank>) + Send + Sync,
) {
    let about_rdma =
        |(name, _): &(&str, &str)| name.contains("RDMA") || name.contains("RENDEZVOUS");
    run_remote(size, settings, &Setup::default(), &program);
    if !settings.iter().any(about_rdma) {
        run_on_hosts(size, settings, &program);
        return run_shared(size, settings, &program);
    }
    for placement in [Placement::Ordered, Placement::Completion] {
        let awkward = Setup {
            placement,
            inline: 0,
            delays: true,
            ..Setup::default()
        };
        run_remote(size, settings, &awkward, &program);
    }
}

/// Over shared memory.
#[allow(dead_code)]
pub fn run_shared(
    size: usize,
    settings: &[(&str, &str)],
    program: impl Fn(&Arc<Rank>) + Send + Sync,
) {
    let segment = pmi::empty_segment().unwrap();
    let reach = |_| (Some(segment.try_clone().unwrap()), None);
    run_over(&vec![0; size], settings, reach, program);
}

/// Over RDMA, by devices of this process, on which nothing waits for a receive.
#[allow(dead_code)]
pub fn run_remote(
    size: usize,
    settings: &[(&str, &str)],
    setup: &Setup,
    program: impl Fn(&Arc<Rank>) + Send + Sync,
) {
    let setup = Setup {
        patient: false,
        ..setup.clone()
    };
    run_nodes(strict::nodes(size, &setup), settings, program);
}

/// Over RDMA, by these nodes, one for each rank.
#[allow(dead_code)]
pub fn run_nodes(
    nodes: Vec<Box<dyn Node + Send>>,
    settings: &[(&str, &str)],
    program: impl Fn(&Arc<Rank>) + Send + Sync,
) {
    let size = nodes.len();
    let mut nodes = nodes.into_iter();
    run_over(&vec![0; size], settings, |_| (None, nodes.next()), program);
}

/// On two hosts, which take turns to get a rank: shared memory in each, devices between them. Ranks sleep where they can,
/// so that both must wake them.
#[allow(dead_code)]
pub fn run_on_hosts(
    size: usize,
    settings: &[(&str, &str)],
    program: impl Fn(&Arc<Rank>) + Send + Sync,
) {
    let setup = Setup {
        placement: Placement::Completion,
        patient: false,
        ..Setup::default()
    };
    let hosts: Vec<u32> = (0..size as u32).map(|rank| rank % 2).collect();
    let mut settings = settings.to_vec();
    if settings.iter().all(|(name, _)| *name != "FISHPLATE_WAIT") {
        settings.push(("FISHPLATE_WAIT", "sleep"));
    }
    let segments = [0, 1].map(|_| pmi::empty_segment().unwrap());
    let mut nodes = strict::nodes(size, &setup).into_iter();
    let reach = |rank: usize| {
        let segment = segments[rank % 2].try_clone().unwrap();
        (Some(segment), nodes.next())
    };
    run_over(&hosts, &settings, reach, program);
}

fn run_over(
    hosts: &[u32],
    settings: &[(&str, &str)],
    mut reach: impl FnMut(usize) -> (Option<OwnedFd>, Option<Box<dyn Node + Send>>),
    program: impl Fn(&Arc<Rank>) + Send + Sync,
) {
    static TELL: Once = Once::new();
    // The words of a panic would go with what the test harness has captured.
    TELL.call_once(|| std::panic::set_hook(Box::new(eprint_past_capture)));
    let size = hosts.len();
    std::thread::scope(|scope| {
        for rank in 0..size {
            let (segment, node) = reach(rank);
            let program = &program;
            scope.spawn(move || {
                let knobs = knobs::Knobs::parse(
                    settings.iter().map(|(k, v)| (k.to_string(), v.to_string())),
                )
                .unwrap();
                let hosts = Hosts::new(hosts.to_vec());
                let wiring = Wiring {
                    peers: Peers {
                        rank,
                        size,
                        local: hosts.beside(rank).collect(),
                        segment,
                        node: node.map(|node| node as Box<dyn Node>),
                    },
                    bootstrap: Arc::new(Standalone::new(rank, hosts)),
                };
                let _fails = Fails;
                let rank = Rank::new(Some(wiring), knobs).unwrap();
                let rank = Arc::new(rank);
                program(&rank);
                rank.finish("MPI_Finalize").unwrap();
            });
        }
    });
}

#[allow(dead_code)]
pub fn run(size: usize, program: impl Fn(&Arc<Rank>) + Send + Sync) {
    run_with(size, &[], program);
}

/// The bytes of a slice as a buffer to send; they must stay until the send is complete.
pub fn out(bytes: &[u8]) -> Buffer {
    // SAFETY: the tests keep the bytes until the operation is complete, and a send does not write.
    unsafe { Buffer::dense(bytes.as_ptr().cast_mut(), bytes.len()) }
}

/// The bytes of a slice as a buffer to receive into.
pub fn room(bytes: &mut [u8]) -> Buffer {
    // SAFETY: the tests keep the bytes until the operation is complete, and look at them afterwards.
    unsafe { Buffer::dense(bytes.as_mut_ptr(), bytes.len()) }
}

/// Bytes that tell where they come from.
#[allow(dead_code)]
pub fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 7 + seed * 13 + at / 255) as u8)
        .collect()
}

fn eprint_past_capture(panic: &std::panic::PanicHookInfo) {
    let _ = writeln!(std::io::stderr(), "{panic}");
}

/// Ends the test program when a rank panics: its peers would wait for it for ever.
struct Fails;

impl Drop for Fails {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Four integers, three in a row and one behind a gap, every 32 bytes.
#[allow(dead_code)]
pub fn gapped() -> Type {
    let four = Type::indexed(&[3, 1], &[0, 4], &Predefined::INT.into()).unwrap();
    Type::resized(0, 32, &four).unwrap()
}

/// `count` elements that begin at the slice's address.
#[allow(dead_code)]
pub fn typed(bytes: &mut [u8], count: usize, ty: &Type) -> Buffer {
    elements(bytes, count, ty).buffer()
}

#[allow(dead_code)]
pub fn elements(bytes: &mut [u8], count: usize, ty: &Type) -> Elements {
    assert!(bytes.len() >= count * ty.extent() as usize);
    // SAFETY: the tests keep the bytes until the operation is complete, and look at them afterwards.
    unsafe { Elements::new(bytes.as_mut_ptr(), count, ty) }
}

/// The products of 2 x 2 matrices of wrapping integers: `low` becomes low x high. The order matters.
#[allow(dead_code)]
pub fn multiply(low: &mut [u8], high: &[u8]) {
    for (low, high) in low.chunks_exact_mut(16).zip(high.chunks_exact(16)) {
        let number =
            |bytes: &[u8], at: usize| u32::from_ne_bytes(bytes[at * 4..][..4].try_into().unwrap());
        let a: [u32; 4] = std::array::from_fn(|at| number(low, at));
        let b: [u32; 4] = std::array::from_fn(|at| number(high, at));
        for at in 0..4 {
            let (row, column) = (at / 2 * 2, at % 2);
            let sum = a[row]
                .wrapping_mul(b[column])
                .wrapping_add(a[row + 1].wrapping_mul(b[column + 2]));
            low[at * 4..][..4].copy_from_slice(&sum.to_ne_bytes());
        }
    }
}

/// The same as an operation of the user's, on matrices in a row or [`gapped`].
#[allow(dead_code)]
pub fn matrix_product(with_gaps: bool) -> Operation {
    let (stride, last) = if with_gaps { (32, 16) } else { (16, 12) };
    let call = move |input: *const u8, inout: *mut u8, count: usize, ty: &Type, handle: usize| {
        assert_eq!((ty.size(), ty.extent(), handle), (16, stride as isize, 77));
        for element in 0..count {
            // SAFETY: an element's four integers lie at 0, 4, 8 and `last`.
            unsafe {
                let (input, inout) = (input.add(element * stride), inout.add(element * stride));
                let load = |from: *const u8| {
                    let mut packed = [0; 16];
                    packed[..12].copy_from_slice(std::slice::from_raw_parts(from, 12));
                    packed[12..].copy_from_slice(std::slice::from_raw_parts(from.add(last), 4));
                    packed
                };
                let (mut low, high) = (load(input), load(inout));
                multiply(&mut low, &high);
                std::slice::from_raw_parts_mut(inout, 12).copy_from_slice(&low[..12]);
                std::slice::from_raw_parts_mut(inout.add(last), 4).copy_from_slice(&low[12..]);
            }
        }
    };
    // SAFETY: it touches the elements' integers only.
    let function = Arc::new(unsafe { Function::new(call) });
    Operation::User {
        function,
        commutative: false,
        datatype: 77,
    }
}
