use profile::{Messages, Shares, SizeClass, Strangers};

use super::*;

fn four_ranks() -> Summary {
    let times = |rank, mpi_s: f64| RankTimes {
        rank,
        mpi_s,
        compute_s: 0.01 - mpi_s,
        wait_s: Some(mpi_s / 2.0),
        inside_s: 0.0,
        thread_s: 0.0,
    };
    let procedure = |name: &str, calls, seconds| ProcedureUse {
        name: name.into(),
        calls,
        seconds,
        bytes: 0,
    };
    let class = |up_to, count, bytes| SizeClass {
        up_to,
        count,
        bytes,
    };
    let resource = |name: &str, host, rail, share| ResourceUse {
        name: name.into(),
        host,
        rail,
        busy_s: share * 0.01,
        share,
    };
    Summary {
        program: "./cg".into(),
        ranks: 4,
        ranks_per_host: 1,
        fabric: Some("qdr".into()),
        virtual_s: Some(0.01),
        wall_s: 1.234,
        mpi_share: Shares {
            least: 0.1,
            median: 0.15,
            most: 0.5,
        },
        per_rank: vec![
            times(0, 0.001),
            times(1, 0.001),
            times(2, 0.002),
            times(3, 0.005),
        ],
        procedures: vec![
            procedure("MPI_Allreduce", 400, 0.008),
            procedure("MPI_Init", 4, 0.001),
            procedure("MPI_Send", 1, 0.000_004),
        ],
        messages: Messages {
            count: 1003,
            bytes: 1_055_576,
            by_size: vec![
                class(0, 1, 0),
                class(8, 1000, 7000),
                class(1 << 19, 2, 1_048_576),
            ],
        },
        matrix: vec![
            [0, 1, 3, 1_048_576].into(),
            [1, 0, 500, 3500].into(),
            [2, 2, 9, 9_999_999].into(),
        ],
        resources: vec![
            resource("link out", 3, Some(1), 0.87),
            resource("processor of rank 0 (copies)", 0, None, 0.004),
            resource("memory", 2, None, 0.003),
            resource("link in", 2, Some(0), 0.002),
        ],
        ..Summary::default()
    }
}

#[test]
fn a_summary_has_few_lines_of_80_columns() {
    let text = summary(&four_ranks());
    let expected = "\
fishplate: 4 ranks on qdr, 1 a host
  time           10.0 ms of virtual time, computed in 1.23 s
  time in MPI    least 10 %, median 15 %, most 50 % (rank 3); 50 % of it waiting
  procedures     MPI_Allreduce               89 %       400 calls of 20.0 µs
                 MPI_Init                    11 %         4 calls of 250 µs
  messages          ≤ 64 B    larger       all
    number            1001         2      1003
    bytes         6.84 KiB  1.00 MiB  1.01 MiB
  heaviest       0 to 1: 1.00 MiB, 1 to 0: 3.42 KiB
  busiest        host 3, rail 1: link out 87 %
                 processor of rank 0 (copies) 0.4 %
                 host 2: memory 0.3 %
";
    assert_eq!(text, expected);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn a_job_whose_computing_is_free_is_all_in_mpi() {
    let mut job = four_ranks();
    for rank in &mut job.per_rank {
        rank.compute_s = 0.0;
    }
    let text = summary(&job);
    assert!(
        text.contains("time in MPI    all, as --compute is none; 50 % of it waiting\n"),
        "{text}"
    );
}

#[test]
fn a_job_on_this_machine_has_no_virtual_time() {
    let mut job = four_ranks();
    (job.fabric, job.virtual_s, job.partial) = (None, None, true);
    job.resources.clear();
    for rank in &mut job.per_rank {
        rank.wait_s = None;
    }
    let text = summary(&job);
    assert!(
        text.starts_with("fishplate: 4 ranks\n  time           1.23 s\n  incomplete"),
        "{text}"
    );
    assert!(text.contains("most 50 % (rank 3)\n"), "{text}");
    assert!(!text.contains("busiest"), "{text}");
}

#[test]
fn few_ranks_have_a_matrix_and_many_a_list() {
    let mut job = four_ranks();
    let expected = concat!(
        "  MiB from each rank (row) to each rank (column)\n",
        "         0   1   2   3\n",
        "     0   .   1   .   .\n",
        "     1   0   .   .   .\n",
        "     2   .   .  10   .\n",
        "     3   .   .   .   .\n",
    );
    assert_eq!(matrix(&job), expected);
    job.ranks = 17;
    let text = matrix(&job);
    assert!(
        text.contains("      0 to 1                3 messages   1.00 MiB\n"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 3);
}

#[test]
fn the_widest_messages_fit_80_columns() {
    let mut job = four_ranks();
    let class = |up_to| SizeClass {
        up_to,
        count: 123_456_789,
        bytes: 1023 << 40,
    };
    job.messages.by_size = [64, 1 << 10, 16 << 10, 256 << 10, 1 << 20]
        .map(class)
        .to_vec();
    let text = summary(&job);
    assert!(text.contains("≤ 256 KiB    larger"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn the_widest_matrix_fits_80_columns() {
    let mut job = four_ranks();
    job.ranks = 16;
    let pairs = (0..16).flat_map(|from| (0..16).map(move |to| [from, to, 1, 999 << 20].into()));
    job.matrix = pairs.collect();
    let text = matrix(&job);
    assert!(text.contains(" 999 999"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn connections_of_strangers_are_counted_where_there_were_some() {
    let mut job = four_ranks();
    assert!(!summary(&job).contains("strangers"));
    let of = |rank, count| Strangers {
        rank,
        rail: 1,
        count,
    };
    job.strangers = vec![of(0, 400), of(3, 600)];
    let text = summary(&job);
    let line = "  strangers      1000 dropped: 400 by rank 0 on rail 1, 600 by rank 3 on rail 1\n";
    assert!(text.ends_with(line), "{text}");
    job.strangers.push(of(3, u64::MAX));
    let text = summary(&job);
    assert!(text.ends_with("600 by rank 3 on rail 1, …\n"), "{text}");
}
