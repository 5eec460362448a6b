use super::*;
use crate::read::{Counted, PeerTraffic};

fn record(time: u64, in_mpi: u64) -> RankRecord {
    RankRecord {
        state: State::Finished,
        time,
        in_mpi,
        ..RankRecord::default()
    }
}

#[test]
fn shares_are_least_median_and_most() {
    let second = SECOND as u64;
    let records = [
        record(10 * second, second),
        record(10 * second, 2 * second),
        record(10 * second, 5 * second),
        record(8 * second, 8 * second),
    ];
    let summary = Summary::of(JobFacts::default(), &records);
    let shares = summary.mpi_share;
    assert_eq!((shares.least, shares.most), (0.1, 1.0));
    assert!((shares.median - 0.35).abs() < 1e-12);
    assert_eq!(summary.per_rank[0].compute_s, 9.0);
    assert_eq!((summary.virtual_s, summary.partial), (None, false));
}

#[test]
fn ranks_are_summed_and_sorted() {
    let procedure = |name: &str, time| Procedure {
        name: name.into(),
        calls: 2,
        time,
        bytes: 64,
    };
    let peer = |rank, bytes| PeerTraffic {
        rank,
        sent: Counted { count: 1, bytes },
    };
    let class = SizeClass {
        up_to: 64,
        count: 2,
        bytes: 100,
    };
    let first = RankRecord {
        procedures: vec![procedure("MPI_Send", 1), procedure("MPI_Recv", 9)],
        peers: vec![peer(2, 5), peer(1, 6)],
        sizes: vec![class],
        ..record(20, 10)
    };
    let killed = RankRecord {
        state: State::Running,
        procedures: vec![procedure("MPI_Send", 30)],
        ..first.clone()
    };
    let facts = JobFacts {
        fabric: Some("qdr".into()),
        ..JobFacts::default()
    };
    let summary = Summary::of(facts, &[first, killed]);
    let names: Vec<_> = summary
        .procedures
        .iter()
        .map(|p| (&*p.name, p.calls))
        .collect();
    assert_eq!(names, [("MPI_Send", 4), ("MPI_Recv", 2)]);
    assert_eq!((summary.messages.count, summary.messages.bytes), (4, 200));
    assert_eq!(summary.messages.by_size.len(), 1);
    let pairs: Vec<[u64; 4]> = summary.matrix.iter().map(|&pair| pair.into()).collect();
    assert_eq!(
        pairs,
        [[0, 1, 1, 6], [0, 2, 1, 5], [1, 1, 1, 6], [1, 2, 1, 5]]
    );
    assert!(summary.partial);
    assert_eq!(summary.virtual_s, Some(20.0 / SECOND));
}

#[test]
fn rails_that_strangers_have_visited_are_listed() {
    let visited = RankRecord {
        strangers: [0, 3, 0, 0, 0, 0, 0, u64::MAX],
        ..record(20, 10)
    };
    let summary = Summary::of(JobFacts::default(), &[record(20, 10), visited]);
    let of = |rail, count| Strangers {
        rank: 1,
        rail,
        count,
    };
    assert_eq!(summary.strangers, [of(1, 3), of(7, u64::MAX)]);
}

#[test]
fn a_job_without_mpi_has_an_empty_summary() {
    let summary = Summary::of(JobFacts::default(), &[RankRecord::default()]);
    assert!(summary.is_empty() && !summary.partial);
}
