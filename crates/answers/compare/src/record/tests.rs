//! Records of one program.

use trace::{Builder, Gaps, Signature, Value};

use super::*;

/// The trace of a rank that calls barriers of these communicators, and ends after `nanos`
/// nanoseconds of computing.
fn trace(comms: &[i64], nanos: u64) -> Arc<Trace> {
    let mut builder = Builder::new("./a 1".into());
    let mut call = |line: &str, values| {
        let signature = builder.signature(Signature::parse(line).unwrap());
        builder.call(signature, values)
    };
    let barriers = comms.iter();
    let barriers = barriers.map(|comm| call("MPI_Barrier comm:comm", vec![Value::Number(*comm)]));
    let mut calls: Vec<u32> = barriers.collect();
    calls.push(call("MPI_Finalize", Vec::new()));
    let mut gaps = Gaps::default();
    gaps.push(0, comms.len() as u64);
    gaps.push(nanos, 1);
    builder.rank(&calls, gaps, Gaps::default());
    Arc::new(builder.finish())
}

/// The trace with the same rank twice.
fn twice(trace: &Trace) -> Arc<Trace> {
    let mut trace = trace.clone();
    trace.ranks.push(trace.ranks[0].clone());
    Arc::new(trace)
}

fn of_one(traces: &[Arc<Trace>]) -> Recordings {
    let record = Record::of_traces(traces, &[1]).unwrap();
    record.of(1).unwrap().clone()
}

#[test]
fn a_file_has_the_recordings_of_each_number_of_ranks() {
    let one = trace(&[], 5);
    let traces = [one.clone(), twice(&one), trace(&[], 6)];
    let record = Record::of_traces(&traces, &[2, 1]).unwrap();
    let counts = record.counts.iter();
    let counts = counts.map(|of| (of.ranks, of.recordings.len(), of.threads));
    assert_eq!(counts.collect::<Vec<_>>(), [(2, 1, 1), (1, 2, 1)]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept");
    record.write(&file).unwrap();
    let kept = Trace::read_all(&std::fs::read(&file).unwrap()).unwrap();
    let kept: Vec<Arc<Trace>> = kept.into_iter().map(Arc::new).collect();
    assert_eq!(
        kept,
        [traces[1].clone(), traces[0].clone(), traces[2].clone()]
    );
    assert!(!record.has_wildcards());
}

#[test]
fn one_recording_can_be_left_out() {
    let of = of_one(&[5, 900, 7].map(|nanos| trace(&[], nanos)));
    assert!(of.are_aligned());
    let total = |without| of.middle(without).unwrap().total();
    assert_eq!([None, Some(0), Some(1)].map(total), [7, 453, 6]);
    assert_eq!(Recordings::new(3).middle(None), None);
}

#[test]
fn recordings_without_a_median_are_replayed_once() {
    let of = of_one(&[trace(&[], 5), trace(&[257], 9), trace(&[258], 8)]);
    assert!(!of.are_aligned());
    let same = [None, Some(0), Some(1), Some(2)].map(|without| of.same_without(without));
    assert_eq!(same, [None, None, Some(1), Some(1)]);
}

#[test]
fn a_rank_that_is_interrupted_often_is_disturbed() {
    let rank = |switches, computing_s| RankComputing {
        rank: 0,
        switches,
        computing_s,
        threads: 1,
    };
    assert!(!is_disturbed(0.0, &[rank(1, 0.0007), rank(0, 0.0007)]));
    assert!(is_disturbed(0.0, &[rank(0, 0.0007), rank(2, 0.0007)]));
    assert!(!is_disturbed(0.0, &[rank(20, 0.25)]));
    assert!(is_disturbed(0.0, &[rank(80, 0.25)]));
    assert!(is_disturbed(0.02, &[]));
}

/// Fills a collection; the recordings with these numbers are disturbed. Returns the numbers of the
/// used recordings, the number made, and the remark.
fn filled(wanted: usize, most: usize, disturbed: &[u64]) -> (Vec<u64>, usize, Option<String>) {
    let mut number = 0;
    let mut collection = Collection::default();
    let record = || {
        number += 1;
        Ok(Recording {
            computing: Computing::of(trace(&[], number)).unwrap(),
            disturbed: disturbed.contains(&number),
        })
    };
    collection.fill(wanted, most, record).unwrap();
    let totals = collection.used.iter().map(Computing::total);
    (totals.collect(), collection.made(), collection.remark(1))
}

#[test]
fn a_disturbed_recording_is_made_again() {
    assert_eq!(filled(3, 9, &[]), (vec![1, 2, 3], 3, None));
    let (kept, made, remark) = filled(3, 9, &[1, 3]);
    assert_eq!((kept, made), (vec![2, 4, 5], 5));
    assert!(remark.unwrap().ends_with("2 recordings of 1 ranks were disturbed (a rank was interrupted while it computed, or a hypervisor took time): made again"));
    // On a computer that is never quiet, disturbed recordings are used after `most` attempts.
    let (kept, made, remark) = filled(3, 9, &[1, 2, 3, 4, 5, 6, 7, 9]);
    assert_eq!((kept, made), (vec![8, 1, 2], 9));
    assert!(
        remark
            .unwrap()
            .ends_with("6 made again, 2 count all the same")
    );
    // The user wants exactly this number of recordings.
    let (kept, made, remark) = filled(2, 2, &[2]);
    assert_eq!((kept, made), (vec![1, 2], 2));
    assert!(remark.unwrap().ends_with("count all the same"));
}

/// Recordings that differ get two more, as the line before the first run says.
#[test]
fn further_recordings_come_in_pairs() {
    let mut number = 0;
    let mut record = || {
        number += 1;
        Ok(Recording {
            computing: Computing::of(trace(&[], number)).unwrap(),
            disturbed: number == 4,
        })
    };
    let mut collection = Collection::default();
    collection.fill(3, 9, &mut record).unwrap();
    let counts = [(5, 6), (7, 8), (9, 9)].map(|expected| {
        collection.add_pair(9, &mut record).unwrap();
        ((collection.used.len(), collection.made()), expected)
    });
    for (found, expected) in counts {
        assert_eq!(found, expected);
    }
}
