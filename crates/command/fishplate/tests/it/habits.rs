//! Tests of command lines in the syntax of other launchers: several programs, hostfiles,
//! environments, output and input.

use crate::common::{Done, FISHPLATE, Folder, command, run};

/// Options by which several hosts are simulated on this one.
const LAUNCH: [&str; 2] = ["--launch-with", "env HOST={host}"];

/// The lines of output of a job, which must succeed, sorted.
#[track_caller]
fn lines(job: &Done) -> Vec<&str> {
    let mut lines: Vec<&str> = job.code(0).stdout.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_job_may_have_several_programs() {
    let show = "echo $FISHPLATE_RANK/$FISHPLATE_SIZE $FISHPLATE_APPNUM $A$B $PWD $0";
    let line =
        format!("-genv B both -n 1 sh -c '{show}' one\n-n 2 -env A 1 -wdir / sh -c '{show}' two\n");
    let folder = Folder::new("programs");
    let file = folder.file("programs", &line, 0o644);
    let here = std::env::current_dir().unwrap().display().to_string();
    let expected = [
        format!("0/3 0 both {here} one"),
        "1/3 1 1both / two".into(),
        "2/3 1 1both / two".into(),
    ];
    let typed = [
        "-genv", "B", "both", "sh", "-c", show, "one", ":", "-n", "2",
    ];
    let typed = [
        &typed[..],
        &["-env", "A=1", "-wdir", "/", "sh", "-c", show, "two"],
    ]
    .concat();
    let jobs = [
        run(&typed).finish(),
        run(&["-configfile", file.to_str().unwrap()]).finish(),
        run(&["--hosts", "a:1,b:2"])
            .arguments(&LAUNCH)
            .arguments(&typed)
            .finish(),
    ];
    for job in &jobs {
        assert_eq!(lines(job), expected);
        job.silent();
    }
    let job = run(&["true", ":", "sh", "-c", "exit 3"]).finish();
    job.code(3).one_line(&["rank 1 (pid ", ", sh on "]);
    run(&["true", ":", "/no/program"])
        .finish()
        .code(127)
        .one_line(&["/no/program"]);
}

#[test]
fn ranks_inherit_the_variables_asked_for() {
    let script = "echo ${A-none} ${B-none} ${C-none} $FISHPLATE_RANK";
    let cases: [(&[&str], &str); 5] = [
        (&[], "1 2 none 0"),
        (&["-genvlist", "B,PATH"], "none 2 none 0"),
        (&["-genvnone", "-env", "C", "3"], "none none 3 0"),
        (&["-envlist", "A"], "1 none none 0"),
        (&["-genvnone", "-x", "B"], "none 2 none 0"),
    ];
    let elsewhere = ["--hosts", "a", "--launch-with", "env -u A -u B"];
    for (options, expected) in cases {
        for hosts in [&[][..], &elsewhere] {
            if options.is_empty() && !hosts.is_empty() {
                continue;
            }
            let job = run(&[hosts, options, &["sh", "-c", script]].concat())
                .env("A", "1")
                .env("B", "2");
            assert_eq!(lines(&job.finish()), [expected], "{options:?} {hosts:?}");
        }
    }
}

#[test]
fn ranks_know_their_place_on_their_host() {
    let script = "echo $FISHPLATE_RANK $FISHPLATE_LOCAL_RANK/$FISHPLATE_LOCAL_SIZE $MPI_LOCALRANKID/$MPI_LOCALNRANKS \
                  $OMPI_COMM_WORLD_LOCAL_RANK/$OMPI_COMM_WORLD_SIZE $PMI_RANK/$PMI_SIZE";
    let expected = [
        "0 0/1 0/1 0/3 0/3",
        "1 0/2 0/2 0/3 1/3",
        "2 1/2 1/2 1/3 2/3",
    ];
    let job = run(&["--hosts", "a:1,b:2", "-n", "3"]).arguments(&LAUNCH);
    assert_eq!(
        lines(&job.arguments(&["sh", "-c", script]).finish()),
        expected
    );
    let job = run(&[
        "-n",
        "2",
        "--fabric",
        "qdr",
        "--summary",
        "none",
        "sh",
        "-c",
        script,
    ]);
    assert_eq!(
        lines(&job.finish()),
        ["0 0/1 0/1 0/2 0/2", "1 0/1 0/1 0/2 1/2"]
    );
}

#[test]
fn hostfiles_place_ranks() {
    let folder = Folder::new("hostfile");
    let file = folder.file("hosts", "# two hosts\na slots=1 max_slots=2\nb:2\n", 0o644);
    let file = file.to_str().unwrap();
    let show = ["sh", "-c", "echo $HOST $FISHPLATE_RANK"];
    let on = |options: &[&str]| {
        let job = run(&["-f", file]).arguments(&LAUNCH);
        job.arguments(options).arguments(&show).finish()
    };
    assert_eq!(lines(&on(&[])), ["a 0", "b 1", "b 2"]);
    assert_eq!(lines(&on(&["-n", "2"])), ["a 0", "b 1"]);
    assert_eq!(lines(&on(&["-n", "2", "-ppn", "1"])), ["a 0", "b 1"]);
    on(&["-n", "4"])
        .code(2)
        .one_line(&[file, ": 4 ranks, and places for 3", "--oversubscribe"]);
    let all = ["a 0", "a 1", "b 2", "b 3", "b 4"];
    assert_eq!(lines(&on(&["-n", "5", "--oversubscribe"])), all);
    let bad = folder.file("bad", "a\nb cpus=1\n", 0o644);
    run(&["-machinefile", bad.to_str().unwrap(), "true"])
        .finish()
        .code(2)
        .one_line(&["bad:2: `cpus`"]);
}

#[test]
fn ranks_per_host_on_one_host() {
    let count = |options: &[&str]| run(options).arguments(&["echo"]).finish();
    assert_eq!(count(&["-ppn", "2"]).code(0).stdout, "\n\n");
    assert_eq!(count(&["-n", "2", "-ppn", "4"]).code(0).stdout, "\n\n");
    count(&["-n", "4", "-N", "2"])
        .code(2)
        .one_line(&["--ppn 2: 4 ranks need more hosts", "--hostfile"]);
    let cores = std::thread::available_parallelism().unwrap().get();
    let more = (cores + 1).to_string();
    count(&["-n", &more, "--nooversubscribe"])
        .code(1)
        .one_line(&[&more, " ranks on a host", "--nooversubscribe"]);
    count(&["-n", "1", "--nooversubscribe"]).code(0).silent();
}

#[test]
fn ranks_per_host_and_per_socket_in_the_words_of_open_mpi() {
    let count = |options: &[&str]| run(options).arguments(&["echo"]).finish();
    let elsewhere = ["--hosts", "a,b", LAUNCH[0], LAUNCH[1]];
    let job = count(&[&elsewhere[..], &["--map-by", "ppr:2:node"]].concat());
    assert_eq!(job.code(0).stdout, "\n".repeat(4));
    let job = count(&["--map-by", "ppr:2:node", "--rank-by", "slot"]);
    assert_eq!(job.code(0).stdout, "\n\n");
    count(&["-n", "3", "--map-by", "ppr:2:node"])
        .code(2)
        .one_line(&["--ppn 2: 3 ranks need more hosts"]);
    // Without a number of ranks, all parts of this machine get ranks.
    let job = count(&["--map-by", "ppr:1:hwthread"]);
    let threads = rustix::thread::sched_getaffinity(None).unwrap().count();
    assert_eq!(job.code(0).stdout.len(), threads as usize);
    count(&["-map-by", "ppr:2:board"])
        .code(2)
        .errors(&["valid are slot, core, ", "ppr:COUNT:PART"]);
}

#[test]
fn further_lists_add_hosts() {
    let show = ["sh", "-c", "echo $HOST $FISHPLATE_RANK"];
    let job = run(&["-host", "a", "-H", "b:2,c", "--hosts", "a"]).arguments(&LAUNCH);
    let job = job.arguments(&show).finish();
    assert_eq!(lines(&job), ["a 0", "a 1", "b 2", "b 3", "c 4"]);
    let job = run(&["-host", "a", "-host", "b:x", "true"]).finish();
    job.code(2).one_line(&["--hosts a,b:x: `b:x` is not HOST"]);
}

/// There is no agent, so neither ssh nor another command is needed.
#[test]
fn loopback_addresses_are_this_host() {
    let show = ["sh", "-c", "echo $FISHPLATE_RANK"];
    let job = run(&["-n", "2", "-host", "127.0.0.1"]).env("PATH", "/usr/bin:/bin");
    assert_eq!(lines(&job.arguments(&show).finish()), ["0", "1"]);
}

#[test]
fn a_negative_number_of_ranks_is_called_so() {
    for words in [["-n", "-3"], ["-np", "-3"], ["--ranks", "-3"]] {
        let job = run(&words).arguments(&["true"]).finish();
        job.code(2).errors(&["'-3'", "cannot be negative"]);
    }
    run(&["-n", "-l", "true"])
        .finish()
        .code(2)
        .errors(&["'-l'", "valid are whole numbers"]);
}

#[test]
fn the_installation_is_named() {
    let version = env!("CARGO_PKG_VERSION");
    let line = format!("fishplate run (Fishplate, MPI 5.0) {version}\n");
    let job = run(&["--version"]).finish();
    assert_eq!(job.code(0).stdout, line);
    let job = run(&["-info"]).finish();
    let rest = job.code(0).stdout.strip_prefix(&line);
    let own = command(FISHPLATE).arguments(&["info"]).finish();
    assert_eq!(
        rest.and_then(|rest| rest.lines().next()),
        own.stdout.lines().next()
    );
}

#[test]
fn output_goes_where_it_is_wanted() {
    let folder = Folder::new("output");
    let write = [
        "sh",
        "-c",
        "echo out $FISHPLATE_RANK; echo err $FISHPLATE_RANK >&2",
    ];
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).unwrap();
    let elsewhere = ["--hosts", "a,b", LAUNCH[0], LAUNCH[1]];
    for hosts in [&[][..], &elsewhere] {
        let with = |options: &[&str]| {
            let job = run(&["-n", "2"]).arguments(hosts).arguments(options);
            job.arguments(&write).current_dir(&folder.0).finish()
        };
        let job = with(&["--output-filename", "both/o"]);
        job.code(0).silent();
        assert_eq!(job.stdout, "");
        assert_eq!(read("both/o.1"), "out 1\nerr 1\n");
        let job = with(&["-outfile-pattern", "o.%r"]);
        assert_eq!(read("o.0"), "out 0\n");
        job.code(0).errors(&["err "]);
        let job = with(&["--merge-stderr-to-stdout", "-l"]);
        assert_eq!(
            lines(&job),
            ["[0] err 0", "[0] out 0", "[1] err 1", "[1] out 1"]
        );
        job.silent();
        let job = with(&["--timestamp-output", "--merge-stderr-to-stdout"]);
        for line in lines(&job) {
            let (time, text) = line.split_once("Z ").unwrap();
            assert!(
                time.len() == "00:00:00.000".len() && text.len() == 5,
                "{line}"
            );
        }
        let job = with(&["--merge-stderr-to-stdout"]);
        assert_eq!(lines(&job), ["err 0", "err 1", "out 0", "out 1"]);
        with(&["-outfile-pattern", "/dev/null/x"])
            .code(1)
            .errors(&["cannot write a rank's output to /dev/null/x"]);
    }
    run(&["-outfile-pattern", "o.%g", "true"])
        .finish()
        .code(2)
        .errors(&["%r stands for the rank"]);
}

#[test]
fn the_ranks_that_read_input_are_chosen() {
    let show = ["sh", "-c", "echo $FISHPLATE_RANK $(cat)"];
    let with = |options: &[&str]| {
        let job = run(&["-n", "3"]).arguments(options).arguments(&show);
        job.finish_with_input("text\n")
    };
    assert_eq!(lines(&with(&[])), ["0 text", "1", "2"]);
    assert_eq!(lines(&with(&["-s", "2"])), ["0", "1", "2 text"]);
    assert_eq!(lines(&with(&["--stdin", "none"])), ["0", "1", "2"]);
    assert_eq!(
        lines(&with(&["-stdin", "all"])),
        ["0 text", "1 text", "2 text"]
    );
    let elsewhere = ["--hosts", "a:1,b:2", LAUNCH[0], LAUNCH[1]];
    assert_eq!(
        lines(&with(&[&elsewhere[..], &["-s", "1"]].concat())),
        ["0", "1 text", "2"]
    );
    let all = [&["-n", "3"], &elsewhere[..], &["-s", "all", "true"]].concat();
    run(&all)
        .finish()
        .code(2)
        .one_line(&["--stdin all works on one host"]);
    run(&["-n", "2", "-s", "2", "true"])
        .finish()
        .code(2)
        .one_line(&["--stdin 2: the job has ranks 0 to 1"]);
}

#[test]
fn much_input_reaches_all_ranks_even_if_one_does_not_read() {
    let script = "[ $FISHPLATE_RANK = 1 ] && exec 0</dev/null; wc -c";
    let text = "0123456789abcde\n".repeat(100_000);
    let job = run(&["-n", "3", "-s", "all", "sh", "-c", script]).finish_with_input(&text);
    assert_eq!(lines(&job), ["0", "1600000", "1600000"]);
}

#[test]
fn ranks_that_start_are_shown() {
    let job = run(&["-v", "-n", "2", "true"]).finish();
    job.code(0)
        .errors(&["rank 0 (pid ", ", true on ", ") started\n", "rank 1 "]);
    let job = run(&["--hosts", "a,b", "-v", "-n", "2"]).arguments(&LAUNCH);
    let job = job.arguments(&["true"]).finish();
    job.code(0)
        .errors(&["rank 0 (pid ", ", true on a) started\n"]);
    job.errors(&["rank 1 (pid ", ", true on b) started\n"]);
}

#[test]
fn options_without_meaning_are_named_once() {
    let job = run(&["-n", "2", "--mca", "btl", "self", "true"]).finish();
    job.code(0).one_line(&["--mca btl self is ignored"]);
    run(&["-nolocal", "true"])
        .finish()
        .code(2)
        .one_line(&["-nolocal is not supported"]);
}
