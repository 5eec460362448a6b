use super::*;
use crate::operation::Topology;

#[derive(clap::Parser)]
struct Whole {
    #[command(flatten)]
    arguments: BenchArguments,
}

fn cases(words: &str) -> Result<Vec<Case>> {
    let whole = <Whole as clap::Parser>::try_parse_from(words.split(' '))?;
    whole.arguments.what.cases()
}

#[test]
fn the_usual_options() {
    let found = cases("bench bw -m 8:16 -i 7 -x 0 -W 3 -c -n 2").unwrap();
    let plan = &found[0].plan;
    assert_eq!(
        (plan.sizes.as_slice(), plan.window),
        ([8, 16].as_slice(), 3)
    );
    assert_eq!(
        (plan.iterations, plan.skip, plan.validate),
        (Some(7), Some(0), true)
    );
    let found = cases("bench barrier -n 2,4,8").unwrap();
    assert_eq!(found.iter().map(|c| c.ranks).collect::<Vec<_>>(), [2, 4, 8]);
    assert_eq!(
        cases("bench latency -z").unwrap()[0].plan.percentiles,
        [50.0, 90.0, 99.0, 99.9]
    );
    assert_eq!(
        cases("bench latency -z 1,99.5").unwrap()[0]
            .plan
            .percentiles,
        [1.0, 99.5]
    );
    assert!(
        cases("bench latency").unwrap()[0]
            .plan
            .percentiles
            .is_empty()
    );
}

#[test]
fn collectives_have_forms_and_names_of_osu() {
    let name = |words: &str| cases(words).unwrap()[0].plan.benchmark.name();
    assert_eq!(name("bench allreduce"), "allreduce");
    assert_eq!(name("bench allreduce --form nonblocking"), "iallreduce");
    assert_eq!(name("bench iallreduce"), "iallreduce");
    assert_eq!(
        name("bench reduce_scatter_persistent"),
        "reduce-scatter-persistent"
    );
    assert_eq!(name("bench ineighbor-alltoallw"), "ineighbor-alltoallw");
    let plan = &cases("bench ialltoall --test-calls 100").unwrap()[0].plan;
    assert_eq!(plan.test_calls, 100);
    let plan = &cases("bench neighbor-alltoall --topology graph").unwrap()[0].plan;
    assert_eq!(plan.topology, Topology::Graph);
}

#[test]
fn first_touch_has_a_job_for_each_size_and_number() {
    let found = cases("bench first-touch -m 4K:8K --messages 10,100").unwrap();
    let jobs = found.iter().map(|case| {
        let plan = &case.plan;
        (plan.sizes[0], plan.iterations, plan.skip)
    });
    let jobs: Vec<_> = jobs.collect();
    let job = |size, messages| (size, Some(messages), Some(0));
    assert_eq!(
        jobs,
        [job(4096, 10), job(8192, 10), job(4096, 100), job(8192, 100)]
    );
    assert_eq!(cases("bench first-touch").unwrap().len(), 33);
}

#[test]
fn files_have_patterns() {
    let access = |words: &str| match cases(words).unwrap()[0].plan.benchmark {
        Benchmark::File(access) => access,
        other => panic!("{other:?}"),
    };
    assert_eq!(access("bench file-write"), FileAccess::WRITE);
    let hard = access("bench file-read --pattern hard");
    assert_eq!(hard.pattern, Pattern::Hard);
    assert_eq!(hard.name(), "file-read");
    assert_eq!(access("bench file-collective").pattern, Pattern::Tile);
}

#[test]
fn nonsense_is_refused_with_a_reason() {
    for (words, reason) in [
        ("bench file-write --pattern soft", "invalid value 'soft'"),
        (
            "bench file-collective --pattern hard",
            "unexpected argument",
        ),
        ("bench latency -n 3", "between 2 ranks"),
        ("bench latency -W 8", "no window"),
        ("bench latency -i 0", "whole numbers from 1"),
        ("bench file-write --fabric qdr", "files take no time"),
        ("bench file-read --every-choice", "not those of messages"),
        ("bench file-collective -m 0:8", "cannot be 0"),
        (
            "bench latency --fabric qdr,fdr --trace t.json",
            "holds one run",
        ),
        ("bench latency -z 101", "from 0 to 100"),
        ("bench init -i 3", "--rounds"),
        ("bench barrier -m 4", "no message sizes"),
        ("bench latency --seconds 0", "above 0"),
        ("bench first-touch -i 3", "--messages"),
        (
            "bench first-touch --fabric qdr",
            "new memory is not modelled",
        ),
        ("bench latency --form persistent", "unexpected argument"),
        ("bench allreduce --form lazy", "invalid value 'lazy'"),
        (
            "bench iallreduce --form persistent",
            "allreduce --form persistent",
        ),
        (
            "bench ibcast --test-calls 3 --fabric qdr",
            "computing takes no virtual time",
        ),
        (
            "bench allreduce --test-calls 3",
            "only for --form nonblocking",
        ),
        ("bench allreduce --topology graph", "no neighbourhood"),
        ("bench neighbor-alltoall --topology ring", "valid are grid"),
        ("bench pingpong", "unrecognized subcommand"),
    ] {
        let error = cases(words).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(reason), "{words}: {error}");
    }
}
