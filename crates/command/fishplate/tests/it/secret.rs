//! Tests of the secret of a job: its ranks know it, and it is shown nowhere.

use std::collections::BTreeSet;

use crate::common::ranks;

/// The secrets of all ranks of a job with these options. Checks that each is kept secret.
fn secrets_of(options: &[&str], size: usize) -> BTreeSet<String> {
    let job = ranks(options, &["fence", "secret", "fence"]).finish();
    job.code(0);
    let mut secrets = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for line in job.stdout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let ["secret", rank, secret, state] = words[..] else {
            panic!("another process shows the secret: {line}")
        };
        assert_eq!((secret.len(), state), (64, "sealed"), "{line}");
        assert!(!job.stderr.contains(secret), "{}", job.stderr);
        seen.insert(rank.to_string());
        secrets.insert(secret.to_string());
    }
    assert_eq!(seen.len(), size, "{}", job.stdout);
    secrets
}

#[test]
fn all_ranks_of_a_job_know_its_secret_and_no_other_job_does() {
    let hosts = ["--hosts", "a:2,b:1", "--launch-with", "env HOST={host}"];
    let on_hosts = [&["-n", "3", "-v"], &hosts[..]].concat();
    let jobs = [&["-n", "3", "-v"][..], &["-n", "3"], &on_hosts, &on_hosts];
    let mut all = BTreeSet::new();
    for options in jobs {
        let secrets = secrets_of(options, 3);
        assert_eq!(secrets.len(), 1, "{options:?}: {secrets:?}");
        all.extend(secrets);
    }
    assert_eq!(all.len(), jobs.len(), "{all:?}");
}
