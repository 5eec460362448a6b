//! The computing of a trace as a compute trace, in which loops are found and whose times can be
//! changed, and the trace with other computing.

use datatype::local_work::Rates;
use model::compute_trace::made::{MadeCall, add_rank, begin, lines};
use model::compute_trace::{CallKey, ComputeTrace};
use mpi_abi::hosted::RECORDED;
use trace::{Builder, Call, Fact, Gaps, Signature, Trace, Value};

use crate::names::{Method, Names};
use crate::player::ANY_SOURCE;
use crate::sizes::{Moved, Sizes};

/// The distance from which peers that are no ranks, such as MPI_ANY_SOURCE, count in keys. They are
/// negative numbers, and equal on all ranks.
const NO_RANK: i64 = 1 << 30;

/// The computing of a trace: for each call of each rank its name, its key, and the nanoseconds
/// before it.
///
/// # Errors
/// A procedure that cannot be replayed, with the reason.
pub fn computing(trace: &Trace) -> Result<ComputeTrace, String> {
    let names = Names::of(trace)?;
    let mut rates = Rates::none();
    for line in &trace.work {
        let read = rates.read(line);
        read.ok_or_else(|| format!("`{line}` is no time of work inside MPI"))?;
    }
    let described = |call: &Call| {
        let signature = &trace.signatures[call.signature as usize];
        let method = names.method(call.signature);
        MadeCall {
            name: &signature.name,
            nanos: 0,
            // The level of MPI_Pcontrol is not in a trace, so it marks nothing.
            is_aside: matches!(
                method,
                Method::Slept | Method::Told(_) | Method::Passed(_, false)
            ) || signature.name == "MPI_Pcontrol",
            key: key_of(method, signature, call),
        }
    };
    let calls: Vec<MadeCall> = trace.calls.iter().map(described).collect();
    let moved: Vec<Option<Moved>> = trace
        .calls
        .iter()
        .map(|call| Moved::of(&trace.signatures[call.signature as usize], call))
        .collect();
    let mut made = begin(trace.program.clone(), rates);
    for rank in 0..trace.ranks.len() {
        let mut sizes = Sizes::default();
        let recorded = trace.calls_of(rank).map(|(number, nanos)| {
            let call = &trace.calls[number as usize];
            sizes.keep(trace.signature(number), call);
            let mut described = MadeCall {
                nanos,
                ..calls[number as usize]
            };
            if let Some(moved) = &moved[number as usize] {
                described.key.size = Some(CallKey::size_of(sizes.of(moved)));
            }
            described
        });
        add_rank(&mut made, recorded);
    }
    Ok(made)
}

/// The key of a call, as a run on a modelled machine records it, but for the size.
fn key_of(method: Method, signature: &Signature, call: &Call) -> CallKey {
    let mut key = CallKey {
        constructs: matches!(method, Method::Called(number) if RECORDED[number].constructs),
        ..CallKey::default()
    };
    let all = signature.parameters.iter().zip(&call.values);
    for (parameter, value) in all {
        match (parameter.kind.as_str(), value) {
            ("comm", Value::Number(number)) if key.comm.is_none() => {
                key.comm = u32::try_from(*number).ok();
            }
            ("dest" | "source" | "root", value) if key.peer.is_none() => {
                let peer = match value {
                    Value::Relative(distance) => Some(*distance),
                    Value::Met(_) => Some(ANY_SOURCE - NO_RANK),
                    Value::Number(number) if *number < 0 => Some(number - NO_RANK),
                    other => other.number(),
                };
                key.peer = peer.and_then(|peer| i32::try_from(peer).ok());
            }
            _ => (),
        }
    }
    key
}

/// The trace with its marks of steps, and with the computing of a compute trace that [`computing`]
/// has made and the caller may have changed. The program's reduction functions take `thousandths` /
/// 1000 of their time.
pub fn with_computing(trace: &Trace, computing: &ComputeTrace, thousandths: u64) -> Trace {
    let mut builder = Builder::new(trace.program.clone());
    builder.work(&computing.work.lines());
    let numbers: Vec<u32> = trace
        .signatures
        .iter()
        .map(|one| builder.signature(one.clone()))
        .collect();
    let calls: Vec<u32> = trace
        .calls
        .iter()
        .map(|one| builder.call(numbers[one.signature as usize], one.values.clone()))
        .collect();
    let mut mark = None;
    for (rank, part) in trace.ranks.iter().enumerate() {
        let (mut own, mut gaps) = (Vec::new(), Gaps::default());
        let mut recorded = trace.calls_of(rank);
        for line in lines(computing, rank) {
            let (call, nanos) = match line {
                Some(nanos) => match recorded.next() {
                    Some((call, _)) => (calls[call as usize], nanos),
                    None => break,
                },
                None => (*mark.get_or_insert_with(|| step(&mut builder)), 0),
            };
            own.push(call);
            gaps.push(nanos, 1);
        }
        let mut functions = Gaps::default();
        for &(picos, run) in part.functions.runs() {
            let picos = u128::from(picos) * u128::from(thousandths) / 1000;
            functions.push(picos.min(u64::MAX.into()) as u64, run);
        }
        builder.rank(&own, gaps, functions);
    }
    builder.finish()
}

/// Adds the call that marks a step to the trace, and returns its number there.
fn step(builder: &mut Builder) -> u32 {
    let signature = builder.signature(Fact::Step.signature());
    builder.call(signature, Vec::new())
}
