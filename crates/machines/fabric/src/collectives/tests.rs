use super::*;
use proptest::prelude::*;

fn table(release: &str) -> &'static ChoiceTable {
    let tables = ChoiceTable::all().iter();
    let table = tables.clone().find(|table| table.name == release);
    table.unwrap_or_else(|| panic!("no table {release}"))
}

/// The algorithms of a table for a call of `bytes`, as this library counts them, on `ranks` ranks.
fn chosen(release: &str, of: &str, bytes: u64, ranks: u64) -> String {
    let collectives = &table(release).collectives;
    let of = collectives.iter().find(|one| one.name == of).unwrap();
    let choices = of.choices(ranks);
    let choice = choices.iter().rfind(|(from, _)| *from <= bytes);
    choice.unwrap().1.join("/")
}

#[test]
fn each_project_has_a_table_from_its_first_release_on() {
    for project in Project::ALL {
        let first = Release {
            project,
            version: project.first(),
        };
        assert_eq!(ChoiceTable::of(first).name, first.to_string());
    }
    let named = |version| {
        let project = Project::OpenMpi;
        &*ChoiceTable::of(Release { project, version }).name
    };
    assert_eq!(named(Version([4, 0, 7])), "openmpi-1.3");
    assert_eq!(named(Version([4, 1, 0])), "openmpi-4.1");
    assert_eq!(named(Version([5, 0, 3])), "openmpi-5.0");
}

#[test]
fn choices_change_at_the_thresholds_of_the_sources() {
    let cases = [
        // Open MPI 1.6: a ring from 10000 bytes on, whose operands must commute.
        ("openmpi-1.3", "allreduce", 9_999, 8, "recursive-doubling"),
        ("openmpi-1.3", "allreduce", 10_000, 8, "ring/reduce-bcast"),
        // 1.6134e-6 * bytes + 2.1102 is 8 at 3.65 MB.
        ("openmpi-1.3", "bcast", 2_047, 8, "binomial"),
        ("openmpi-1.3", "bcast", 3_650_000, 8, "k-ary"),
        ("openmpi-1.3", "bcast", 3_651_000, 8, "chain"),
        ("openmpi-1.3", "bcast", 370_728, 13, "chain"),
        // All blocks together, as this library counts them.
        (
            "openmpi-1.3",
            "allgather",
            49_999,
            16,
            "recursive-doubling/bruck",
        ),
        ("openmpi-1.3", "allgather", 49_999, 12, "bruck"),
        ("openmpi-1.3", "allgather", 50_000, 12, "ring"),
        ("openmpi-1.3", "alltoall", 199, 13, "bruck/linear"),
        ("openmpi-1.3", "alltoall", 199, 12, "linear"),
        ("openmpi-1.3", "reduce", 511, 7, "auto"),
        ("openmpi-1.3", "reduce", 512, 7, "binomial"),
        // One rank's block, of 1 KiB: 32 times as many bytes as this library counts them.
        (
            "openmpi-4.1",
            "allgather",
            (32 << 10) - 1,
            32,
            "recursive-doubling/bruck",
        ),
        ("openmpi-4.1", "allgather", 32 << 10, 32, "ring"),
        ("openmpi-4.1", "allreduce", 4_095, 16, "recursive-doubling"),
        ("openmpi-4.1", "allreduce", 4_096, 16, "rabenseifner"),
        // A ring to 64 B, which fewer elements than ranks never take.
        ("openmpi-4.1", "allreduce", 8, 16, "recursive-doubling"),
        ("openmpi-4.1", "alltoall", 262_144, 64, "pairwise"),
        (
            "openmpi-5.0",
            "allreduce",
            4_096,
            16,
            "two-level/rabenseifner",
        ),
        ("openmpi-5.0", "barrier", 0, 5, "two-level/auto"),
        ("openmpi-5.0", "alltoall", 262_144, 64, "pairwise"),
        (
            "mpich-3.0",
            "allreduce",
            2_048,
            8,
            "two-level/recursive-doubling",
        ),
        ("mpich-3.0", "allreduce", 2_049, 8, "two-level/rabenseifner"),
        (
            "mpich-3.0",
            "bcast",
            12_288,
            16,
            "two-level/scatter-allgather",
        ),
        ("mpich-3.0", "bcast", 524_288, 16, "scatter-allgather"),
        ("mpich-3.0", "bcast", 1 << 20, 7, "two-level/binomial"),
        ("mpich-4.0", "allreduce", 64, 8, "rabenseifner"),
        ("mpich-4.0", "allreduce", 63, 8, "recursive-doubling"),
        ("mpich-4.0", "bcast", 12_288, 8, "binomial"),
        ("mpich-4.0", "bcast", 12_289, 8, "scatter-allgather"),
        ("mpich-4.0", "allgather", 81_920, 9, "ring"),
        ("mpich-4.0", "alltoall", 257, 8, "linear"),
    ];
    for (release, of, bytes, ranks, expected) in cases {
        let place = format!("{release}: {of} of {bytes} B on {ranks} ranks");
        assert_eq!(chosen(release, of, bytes, ranks), expected, "{place}");
    }
}

proptest! {
    #[test]
    fn every_number_of_ranks_has_choices_from_0_on_by_rising_bytes(ranks in 2_u64..20_000) {
        for table in ChoiceTable::all() {
            for of in &table.collectives {
                let choices = of.choices(ranks);
                let place = format!("{}.{} on {ranks}", table.name, of.name);
                prop_assert_eq!(choices.first().map(|choice| choice.0), Some(0), "{}", place);
                prop_assert!(choices.is_sorted_by(|a, b| a.0 < b.0), "{}", place);
                prop_assert!(choices.iter().all(|(_, ours)| !ours.is_empty()), "{}", place);
            }
        }
    }

    #[test]
    fn a_bound_is_the_first_number_of_bytes_for_which_its_condition_fails(
        ranks in 2_u64..5_000,
        slope in 1e-6_f64..0.01,
        offset in 0.0_f64..20.0,
        inclusive: bool,
    ) {
        let bound = Bound::Line { slope, offset, inclusive };
        let holds = |bytes: u64| {
            let line = slope * bytes as f64 + offset;
            if inclusive { ranks as f64 >= line } else { ranks as f64 > line }
        };
        let first = bound.first_beyond(ranks);
        prop_assert!(!holds(first + 1));
        prop_assert!(first < 2 || holds(first - 2));
    }
}

#[test]
fn the_setting_has_the_exact_choices_of_the_number_of_ranks() {
    for table in ChoiceTable::all() {
        for ranks in [2, 3, 7, 12, 100, 1000] {
            let setting = table.setting(ranks);
            assert!(
                setting.len() < 64 << 10,
                "{}: {}",
                table.name,
                setting.len()
            );
            for of in &table.collectives {
                let mut of_ranks: Vec<u64> = setting
                    .split(',')
                    .filter_map(|one| {
                        let (left, _) = one.split_once('=')?;
                        let (name, number) = left.split_once('/')?;
                        let name = name.split('@').next()?;
                        (name == of.name).then(|| number.parse().unwrap())
                    })
                    .collect();
                of_ranks.dedup();
                assert!(of_ranks.is_sorted(), "{}.{}", table.name, of.name);
                // The last that changes anything has the choices of the job's number.
                let last = *of_ranks.last().unwrap();
                assert_eq!(of.choices(last), of.choices(ranks as u64));
            }
        }
        assert_eq!(table.setting(1), "");
    }
    let allreduce: Vec<String> = table("openmpi-1.3")
        .setting(8)
        .split(',')
        .filter(|one| one.starts_with("allreduce"))
        .map(String::from)
        .collect();
    assert_eq!(
        allreduce,
        [
            "allreduce/2=recursive-doubling",
            "allreduce@10000/2=reduce-bcast",
            "allreduce@10000/2=ring"
        ]
    );
}

#[test]
fn nearest_algorithms_say_how_they_differ() {
    let differences = table("openmpi-1.3").differences();
    assert!(differences.contains(&["allreduce", "segmented_ring", "ring", "pieces of 1 MiB"]));
    assert!(differences.contains(&["reduce", "linear", "auto", "the root receives all vectors"]));
    for table in ChoiceTable::all() {
        assert!(table.collectives().len() >= 9, "{}", table.name);
    }
}

/// The error message about a table with this text in place of its rules for gather.
fn wrong(gather: &str) -> String {
    let text =
        format!("[\"mpich-9.0\"]\nabout = \"a test\"\nsource = \"assumed: a test\"\n{gather}\n");
    let problem = read::read("mine.toml", &text).expect_err(gather);
    problem.to_string()
}

#[test]
// Over 80 lines: a table with a row for each mistake.
fn each_mistake_has_its_message() {
    let cases = [
        ("gather = [", "mine.toml:4: this is not TOML: "),
        (
            "gathr = {}",
            "mine.toml:4: mpich-9.0.gathr: not a collective; valid are barrier, bcast",
        ),
        (
            "gather = 3",
            "mine.toml:4: mpich-9.0.gather: must be a table",
        ),
        (
            "gather = {}",
            "mine.toml:4: mpich-9.0.gather: bytes is missing: \"block\" or \"total\"",
        ),
        (
            "gather = { bytes = \"all\" }",
            "mpich-9.0.gather.bytes: valid are \"block\" and \"total\"",
        ),
        (
            "bcast = { bytes = \"block\" }",
            "mpich-9.0.bcast.bytes: valid are",
        ),
        (
            "gather = { bytes = \"block\" }",
            "gather.rules: the last rule must be for any number of ranks",
        ),
        (
            "gather = { rule = [] }",
            "gather.rule: not a key; valid are bytes, first, rules, algorithms",
        ),
        (
            "gather = { rules = 1 }",
            "gather.rules: must be a list of tables",
        ),
        (
            "gather = { rules = [{ }] }",
            "gather.rules.0: use is missing",
        ),
        (
            "gather = { rules = [{ use = 1 }] }",
            "gather.rules.0: must be a string in quotes",
        ),
        (
            "gather = { rules = [{ ranks = \"below 2\", use = \"a\" }] }",
            "gather.rules.0.ranks: \"below 2\" is not valid; valid are \"power of two\" and",
        ),
        (
            "gather = { rules = [{ use = \"a below -1, b\" }] }",
            "gather.rules.0: \"below -1\" is not a bound: -1 is not a whole number up to 2^40; valid are",
        ),
        (
            "gather = { rules = [{ use = \"a beyond 1, b\" }] }",
            "\"beyond 1\" is not a bound: it is none of the forms; valid are",
        ),
        (
            "gather = { rules = [{ use = \"a below 1 * hosts, b\" }] }",
            "its end is unknown",
        ),
        (
            "gather = { rules = [{ use = \"a while ranks > 0 * bytes + 1, b\" }] }",
            "the slope above 0",
        ),
        (
            "gather = { rules = [{ use = \"a/ below 1, b\" }] }",
            "a step has no name of an algorithm",
        ),
        (
            "gather = { bytes = \"block\", rules = [{ use = \"a below 1\" }] }",
            "gather.rules.0, step 1: the last step must have no bound",
        ),
        (
            "gather = { bytes = \"block\", rules = [{ use = \"a, b\" }] }",
            "step 1: only the last step may have no bound",
        ),
        (
            "gather = { bytes = \"block\", rules = [{ use = \"a\" }, { use = \"a\" }] }",
            "gather.rules.0: rules after one for any number of ranks are never used",
        ),
        (
            "gather = { bytes = \"block\", rules = [{ use = \"b\" }], algorithms = { a = \"linear\" } }",
            "gather: b is not among its algorithms; these are a",
        ),
        (
            "gather = { algorithms = { a = { nearest = \"b\" } } }",
            "gather.algorithms.a: differs is missing",
        ),
        (
            "gather = { algorithms = { a = { near = \"b\" } } }",
            "gather.algorithms.a.near: not a key; valid are nearest and differs",
        ),
        (
            "from = \"mpich-8.0\"",
            "mpich-9.0.from: there is no table mpich-8.0 before this one",
        ),
        (
            "[\"lam-7.1\"]",
            "mine.toml:4: lam-7.1: not the name of a table, its first release; valid is",
        ),
        (
            "[\"mpich-8.0\"]\nabout = \"a\"\nsource = \"assumed: a\"",
            "mpich-8.0: must stand before mpich-9.0, which is not older",
        ),
        (
            "[\"mpich-9.1\"]\nabout = \"a\"",
            "mpich-9.1: needs a source that begins with a standing and a colon; standings are specification",
        ),
        (
            "[\"mpich-9.1\"]\nsource = \"assumed: a\"",
            "mpich-9.1: needs about",
        ),
    ];
    for (text, message) in cases {
        let problem = wrong(text);
        assert!(problem.contains(message), "{text}\n{problem}\n{message}");
        assert!(problem.starts_with("mine.toml:"), "{problem}");
    }
}
