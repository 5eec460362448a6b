//! Tests of the command's arguments, and of the errors for invalid ones.

use std::process::Command;

use crate::common::{FISHPLATE, Folder, command, output, ranks, run};

#[test]
fn a_missing_program_is_named() {
    run(&["-n", "2", "no-such-program-here"])
        .finish()
        .code(127)
        .one_line(&["no-such-program-here", "not found in PATH"]);
    run(&["-n", "2", "./no/such"])
        .finish()
        .code(127)
        .one_line(&["./no/such: no such file"]);
}

#[test]
fn a_program_in_the_working_directory_is_pointed_out() {
    let folder = Folder::new("here");
    folder.file("job-program", "#!/bin/sh\n", 0o755);
    let job = run(&["job-program"]).current_dir(&folder.0).finish();
    job.code(127)
        .one_line(&["not found in PATH; the working directory has one: ./job-program"]);
}

#[test]
fn what_cannot_be_executed_is_explained() {
    let folder = Folder::new("exec");
    let cases = [
        (
            folder.file("plain", "#!/bin/sh\n", 0o644),
            126,
            "permission denied",
        ),
        (
            folder.file("script", "#!/no/such/interpreter\n", 0o755),
            127,
            "interpreter",
        ),
        (folder.0.clone(), 126, "is a directory"),
    ];
    for (program, code, words) in cases {
        run(&["-n", "2", program.to_str().unwrap()])
            .finish()
            .code(code)
            .one_line(&[words]);
    }
}

#[test]
fn ranks_start_in_the_directory_asked_for() {
    let folder = Folder::new("wdir");
    folder.file("which", "#!/bin/sh\npwd\n", 0o755);
    let job = run(&["-n", "2", "--wdir", folder.0.to_str().unwrap(), "./which"]).finish();
    job.code(0).silent();
    let path = folder.0.display();
    assert_eq!(job.stdout, format!("{path}\n{path}\n"));
    run(&["--wdir", "/no/such", "true"])
        .finish()
        .code(127)
        .one_line(&["/no/such", "--wdir"]);
    run(&["--wdir", "/dev/null", "true"])
        .finish()
        .code(127)
        .one_line(&["/dev/null", "--wdir"]);
}

#[test]
fn variables_are_set() {
    let show = ["sh", "-c", "echo $A-$B-$C"];
    let job = run(&[
        &["-x", "A=1=2", "-x", "B", "-x", "C=old", "-x", "C="],
        &show[..],
    ]
    .concat())
    .env("B", "here");
    let job = job.finish();
    job.code(0).silent();
    assert_eq!(job.stdout, "1=2-here-\n");
    run(&["-x", "NOT_SET_AT_ALL", "true"])
        .finish()
        .code(2)
        .one_line(&["-x NOT_SET_AT_ALL", "not set"]);
    run(&["-x", "=1", "true"])
        .finish()
        .code(2)
        .one_line(&["-x =1"]);
}

#[test]
fn a_misspelt_setting_is_reported_once() {
    let parts = [
        "FISHPLATE_EAGR_LIMIT",
        "FISHPLATE_EAGER_LIMIT",
        "fishplate knobs",
    ];
    run(&["-n", "4", "true"])
        .env("FISHPLATE_EAGR_LIMIT", "1")
        .finish()
        .code(2)
        .one_line(&parts);
    run(&["-n", "4", "-x", "FISHPLATE_EAGR_LIMIT=1", "true"])
        .finish()
        .code(2)
        .one_line(&parts);
}

#[test]
fn the_count_of_ranks_has_limits() {
    for count in ["0", "4097"] {
        run(&["-n", count, "true"])
            .finish()
            .code(2)
            .one_line(&[count, "from 1 to 4096"]);
    }
    for count in ["-1", "1.5", "99999999999999999999"] {
        run(&[&format!("-n{count}"), "true"])
            .finish()
            .code(2)
            .errors(&["fishplate: ", count, "--ranks"]);
    }
    run(&["-n", "x", "true"])
        .finish()
        .code(2)
        .errors(&["fishplate: ", "'x'", "--ranks"]);
}

#[test]
fn too_few_descriptors_are_named_and_a_low_soft_limit_is_raised_for_the_launcher_only() {
    let shell = |script: String| command("bash").arguments(&["-c", &script]);
    let job = shell(format!("ulimit -n 80 && exec {FISHPLATE} run -n 64 true")).finish();
    job.code(1)
        .one_line(&["needs ", "hard limit is 80", "ulimit -Hn"]);
    let job = shell(format!(
        "ulimit -Sn 70 && exec {FISHPLATE} run -n 40 sh -c 'ulimit -Sn'"
    ))
    .finish();
    job.code(0).silent();
    assert_eq!(job.stdout, "70\n".repeat(40));
}

#[test]
fn all_is_given_back_when_a_rank_cannot_be_started() {
    // A limit on processes that the first ranks exhaust. It does not apply to root, so another user
    // runs the job.
    let script = format!("ulimit -u 20; exec {FISHPLATE} run -n 100 sleep 1000");
    let job = command("setpriv")
        .arguments(&["--reuid=54321", "--clear-groups", "bash", "-c", &script])
        .finish();
    if job.status.code() == Some(1) && job.stderr.starts_with("fishplate: ") {
        job.code(1)
            .one_line(&["cannot start rank ", " of 100: ", "ulimit -u"]);
    } else {
        assert!(
            job.stderr.contains("setpriv") || job.stderr.contains("ermission"),
            "{}",
            job.stderr
        );
    }
}

#[test]
fn the_other_names_take_the_other_spelling() {
    let folder = Folder::new("names");
    for name in ["mpiexec", "mpirun"] {
        let link = folder.0.join(name);
        std::os::unix::fs::symlink(FISHPLATE, &link).unwrap();
        let show = [
            "--oversubscribe",
            "-np",
            "2",
            "sh",
            "-c",
            "echo $0 $FISHPLATE_SIZE",
            "-np",
        ];
        // As in a package without links, the name is also accepted as the first argument.
        let words = [&[name], &show[..]].concat();
        for job in [
            command(&link).arguments(&show).finish(),
            command(FISHPLATE).arguments(&words).finish(),
        ] {
            job.code(0).silent();
            assert_eq!(job.stdout, "-np 2\n-np 2\n");
        }
        command(&link)
            .arguments(&["-hostfile", "/no/hosts", "true"])
            .finish()
            .code(2)
            .one_line(&["--hostfile /no/hosts: no such file"]);
        command(&link)
            .arguments(&["-gnev", "A", "1", "true"])
            .finish()
            .code(2)
            .one_line(&["no option -gnev", "-genv", name]);
        command(&link)
            .arguments(&["-np", "2", "-hosts", "a,b:0", "true"])
            .finish()
            .code(2)
            .one_line(&["--hosts a,b:0", "b:0"]);
    }
    let job = run(&["-np", "2", "--", "echo", ":", "x"]).finish();
    assert_eq!(job.code(0).stdout, ": x\n: x\n");
}

#[test]
fn options_of_the_program_are_left_alone() {
    let job = run(&[
        "-n",
        "1",
        "echo",
        "-n",
        "--help",
        "--wdir",
        "--version",
        "-H",
    ])
    .finish();
    assert_eq!(job.code(0).stdout, "--help --wdir --version -H");
    let job = run(&["-n", "1", "--", "echo", "--", "x"]).finish();
    assert_eq!(job.code(0).stdout, "-- x\n");
}

#[test]
fn a_job_within_a_rank_is_a_job_of_its_own() {
    let job = run(&[
        "-n",
        "1",
        FISHPLATE,
        "run",
        "-n",
        "2",
        "sh",
        "-c",
        "echo $FISHPLATE_SIZE",
    ])
    .finish();
    assert_eq!(job.code(0).stdout, "2\n2\n");
}

#[test]
fn every_command_explains_itself_with_an_example() {
    for command in ["run", "perf", "knobs", "info"] {
        let help = String::from_utf8(output(&[command, "--help"]).stdout).unwrap();
        assert!(
            help.contains(&format!("Example:\n  fishplate {command}")),
            "{help}"
        );
        assert!(!help.contains('\x1b'), "colours without a terminal: {help}");
    }
}

/// The commit is that of the work tree from which this test was compiled, if it is one.
#[test]
fn the_version_names_the_commit() {
    let git = |words: &[&str]| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
        let ran = Command::new("git").arg("-C").arg(root).args(words).output();
        let ran = ran.ok().filter(|ran| ran.status.success())?;
        String::from_utf8(ran.stdout).ok()
    };
    let is_root = git(&["rev-parse", "--show-prefix"]).is_some_and(|prefix| prefix == "\n");
    let commit = git(&["log", "-1", "--abbrev=10", "--format=commit %h of %cs"]);
    let commit = commit.filter(|_| is_root);
    let said = String::from_utf8(output(&["--version"]).stdout).unwrap();
    let rest = said.strip_prefix(concat!("fishplate ", env!("CARGO_PKG_VERSION"), ", "));
    let rest = rest.expect(&said);
    assert_eq!(rest, commit.as_deref().unwrap_or("commit not known\n"));
    assert_eq!(output(&["-V"]).stdout, said.as_bytes());
}

/// All errors have one prefix and one exit code.
#[test]
fn wrong_arguments_look_the_same_in_all_commands() {
    for words in [
        &["run", "-n", "0", "true"][..],
        &["run", "--no-such-option", "true"],
        &["run", "--fabric", "nothing", "true"],
        &["bench", "latency", "-n", "3"],
        &["bench", "latency", "--no-such-option"],
        &["bench", "latency", "-z", "101"],
        &["bench", "latency", "--fabric", "nothing"],
        &["perf", "write-lat", "--fabric", "nothing"],
        &["perf", "write-lat"],
        &["fabric", "show", "nothing"],
        &["knobs", "--no-such-option"],
        &["info", "--fabric", "nothing"],
        &["study", "no-such-study"],
        &["compare", "--fabrics", "nothing", "-n", "2", "true"],
    ] {
        let ended = output(words);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.starts_with("fishplate: "), "{words:?}: {said}");
    }
}

#[test]
fn the_table_of_settings_is_complete_in_both_forms() {
    let text = String::from_utf8(output(&["knobs", "--all"]).stdout).unwrap();
    let first = String::from_utf8(output(&["knobs"]).stdout).unwrap();
    let json = String::from_utf8(output(&["knobs", "--json"]).stdout).unwrap();
    let rows = json.lines().map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<serde_json::Value> = rows.collect();
    assert_eq!(rows.len(), knobs::TABLE.len());
    for (row, knob) in rows.iter().zip(knobs::TABLE) {
        assert_eq!(row["variable"], knob.env);
        assert_eq!(row["default"], (knob.default)());
        assert!(
            text.contains(&format!("\n{}=", knob.env)) || text.starts_with(knob.env),
            "{}",
            knob.env
        );
        let is_first = first.contains(&format!("{}=", knob.env));
        assert_eq!(is_first, !knob.is_for_studies, "{}", knob.env);
    }
}

#[test]
fn a_setting_that_is_set_is_shown() {
    let job = command(FISHPLATE)
        .arguments(&["knobs"])
        .env("FISHPLATE_EAGER_LIMIT", "64K")
        .finish();
    assert!(
        job.code(0)
            .stdout
            .contains("FISHPLATE_EAGER_LIMIT=64K    (bytes; from 0 to 64M; default 128K;")
    );
    let job = command(FISHPLATE)
        .arguments(&["knobs"])
        .env("FISHPLATE_WAIT", "nap")
        .finish();
    job.code(2).one_line(&["FISHPLATE_WAIT=nap"]);
}

#[test]
fn the_names_of_mvapich_are_aliases_and_ours_win() {
    let knobs = |ours: &str| {
        let job = command(FISHPLATE)
            .arguments(&["knobs"])
            .env("MV2_SM_SCHEDULING", "ROUND_ROBIN")
            .env("MV2_NUM_HCAS", "2")
            .env("FISHPLATE_RAIL_POLICY", ours);
        job.finish()
    };
    let job = knobs("");
    let text = &job.code(0).silent().stdout;
    assert!(
        text.contains("FISHPLATE_RAIL_POLICY=round-robin "),
        "{text}"
    );
    assert!(text.contains("FISHPLATE_RAILS=2 "), "{text}");
    assert!(text.contains("also MV2_SM_SCHEDULING)"), "{text}");
    let job = knobs("fixed");
    let won = ["MV2_SM_SCHEDULING has no effect: FISHPLATE_RAIL_POLICY"];
    let text = &job.code(0).one_line(&won).stdout;
    assert!(text.contains("FISHPLATE_RAIL_POLICY=fixed "), "{text}");
}

#[test]
fn names_of_mvapich_without_meaning_are_reported_once_per_job() {
    let job = run(&["-n", "3", "-x", "MV2_USE_BLOCKING=1", "true"])
        .env("MV2_ENABLE_AFFINITY", "0")
        .finish();
    job.code(0)
        .one_line(&["ignored", "MV2_ENABLE_AFFINITY, MV2_USE_BLOCKING ("]);
    let job = run(&["-n", "2", "-x", "MV2_SM_SCHEDULING=SHARING", "true"]).finish();
    job.code(2)
        .one_line(&["MV2_SM_SCHEDULING=SHARING: expected USE_FIRST"]);
}

/// The command that starts an agent may clear the environment, as ssh does.
#[test]
fn settings_reach_other_hosts_under_each_of_their_names() {
    let path = std::env::var("PATH").unwrap();
    let clean = format!("env -i 'PATH={path}' HOST={{host}}");
    let script = "echo $MV2_NUM_RAILS $FISHPLATE_RAIL_POLICY $OTHER.";
    let job = run(&["-n", "2", "--hosts", "a,b", "--launch-with", &clean])
        .arguments(&["sh", "-c", script])
        .env("MV2_NUM_RAILS", "2")
        .env("FISHPLATE_RAIL_POLICY", "fixed")
        .env("OTHER", "x")
        .finish();
    assert_eq!(job.code(0).stdout, "2 fixed .\n".repeat(2));
}

#[test]
fn a_reader_who_has_seen_enough_is_no_fault() {
    for words in [
        &["knobs"][..],
        &["knobs", "--json"],
        &["info"],
        &["fabric", "list"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = std::process::Command::new(FISHPLATE)
            .args(words)
            .stdout(writer)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(
            ended.status.success() && said.is_empty(),
            "{words:?}: {said}"
        );
    }
}

#[test]
fn info_shows_the_rails_of_a_modelled_machine() {
    let text = String::from_utf8(output(&["info", "--fabric", "2x1-qdr"]).stdout).unwrap();
    for part in [
        "2x1-qdr, hosts 0,2-35:\n",
        "2x1-qdr, host 1:\n",
        "Rails pair 0–0, 1–1 between hosts 0,2-35.\n",
        "Rails pair 0–0 between hosts 0,2-35 and host 1.\nRail 1 of hosts 0,2-35 carries nothing then",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let json = output(&["info", "--fabric", "fdr-2port", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let kind = &json["kinds_of_hosts"][0];
    assert_eq!(kind["rails"].as_array().unwrap().len(), 2);
    assert_eq!(kind["shared_cards"][0]["rails"], serde_json::json!([0, 1]));
    assert_eq!(
        json["pairs"][0]["pairs"],
        serde_json::json!([[0, 0], [1, 1]])
    );
    let job = command(FISHPLATE)
        .arguments(&["info", "--fabric", "nothing"])
        .finish();
    job.code(2).one_line(&["nothing"]);
}

#[test]
fn info_shows_what_the_machine_has() {
    let json: serde_json::Value =
        serde_json::from_slice(&output(&["info", "--json"]).stdout).unwrap();
    assert!(json["cores"].as_u64().unwrap() >= 1);
    // A core has one or several hardware threads.
    let threads = json["affinity"].as_array().unwrap().len() as u64;
    assert!(threads >= json["cores"].as_u64().unwrap());
    for part in ["sockets", "numa_nodes"] {
        assert!(json[part].as_u64().unwrap() >= 1, "{part}");
    }
    let processor = json["processor"].as_str().unwrap();
    assert!(processor.contains(" core"), "{processor}");
    assert!(json["quota"].is_string());
    let interfaces = json["ip"]["interfaces"].as_array().unwrap();
    let loopback = interfaces.iter().find(|one| one["name"] == "lo").unwrap();
    assert_eq!(
        loopback["used"].as_bool().unwrap(),
        loopback["why_not"].is_null()
    );
    assert!(interfaces.iter().any(|one| one["used"] == true));
    let job = command(FISHPLATE)
        .arguments(&["info"])
        .env("PMI_RANK", "0")
        .env("PMI_SIZE", "2")
        .finish();
    assert!(job.code(0).stdout.contains("(PMI_RANK)"), "{}", job.stdout);
}

#[test]
fn ranks_load_our_library_before_others() {
    let folder = Folder::new("library");
    std::fs::create_dir_all(folder.0.join("bin")).unwrap();
    std::fs::create_dir_all(folder.0.join("lib")).unwrap();
    folder.file("lib/libmpi_abi.so.1", "", 0o755);
    let installed = folder.0.join("bin/fishplate");
    std::fs::copy(FISHPLATE, &installed).unwrap();
    let show = ["run", "-n", "1", "sh", "-c", "echo $LD_LIBRARY_PATH"];
    let lib = folder
        .0
        .join("lib")
        .canonicalize()
        .unwrap()
        .display()
        .to_string();
    let job = command(&installed)
        .arguments(&show)
        .env("LD_LIBRARY_PATH", "/other")
        .finish();
    assert_eq!(job.code(0).stdout, format!("{lib}:/other\n"));
    let show = [
        "run",
        "-x",
        "LD_LIBRARY_PATH=/third",
        "sh",
        "-c",
        "echo $LD_LIBRARY_PATH",
    ];
    let job = command(&installed)
        .arguments(&show)
        .env("LD_LIBRARY_PATH", "/other")
        .finish();
    assert_eq!(job.code(0).stdout, format!("{lib}:/third\n"));
}

#[test]
fn ranks_find_the_limits_that_the_launcher_found() {
    let here = rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .current
        .unwrap();
    let job = ranks(&["-n", "2"], &["limit"]).finish();
    assert_eq!(
        job.code(0).stdout.matches(&format!(" {here}\n")).count(),
        2,
        "{}",
        job.stdout
    );
}

#[test]
fn wishes_for_a_binding_are_checked() {
    for (words, expected) in [
        (
            &["--bind-to", "corse"][..],
            "valid are core, hwthread, l3cache, numa, socket, none",
        ),
        (
            &["--bind-to", "core:0"],
            "`:0` is neither a number of parts",
        ),
        (&["--map-by", "dist"], "valid are slot, core"),
        (&["--map-by", "core:span"], "`:span` is not supported here"),
        (
            &["--cpu-set", "3-1"],
            "expected numbers of hardware threads, such as 0-3,8",
        ),
        (
            &["--bind-to", "core", "--fabric", "qdr"],
            "cannot be used with",
        ),
    ] {
        let job = run(&[words, &["true"]].concat()).finish();
        job.code(2);
        assert!(job.stderr.contains(expected), "{words:?}: {}", job.stderr);
    }
    for (words, expected) in [
        (
            &["--cpus-per-proc", "0"][..],
            "a rank needs at least one core",
        ),
        (
            &["--cpus-per-proc", "2", "--map-by", "core:PE=1"],
            "leave one out",
        ),
        (&["--cpu-set", "65000"], "this job may not use 65000 here"),
        (
            &["-n", "2000", "--bind-to", "core"],
            "cannot bind 2000 ranks to 1 core each",
        ),
    ] {
        let job = run(&[words, &["true"]].concat()).finish();
        assert!(job.status.code() != Some(0), "{words:?}");
        job.one_line(&[expected]);
    }
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_any_work() {
    const PAGE: &str = "/nowhere/x.html";
    const PLOT: &str = "/nowhere/x.svg";
    for words in [
        &["study", "all", "--report", PAGE][..],
        &["compare", "--fabrics", "qdr", "--report", PAGE, "true"],
        &["perf", "write-lat", "--fabric", "qdr", "--plot", PLOT],
    ] {
        let refused = output(words);
        let errors = String::from_utf8(refused.stderr).unwrap();
        let says = ": cannot write this file: /nowhere does not exist";
        assert!(errors.contains(says), "{words:?}: {errors}");
        assert!(refused.stdout.is_empty() && !refused.status.success());
    }
}

/// The words by which bash completes the last of `words`.
fn completed(command: &str, words: &[&str]) -> Vec<String> {
    let folder = Folder::new(&format!("completions-{command}-{}", words.concat().len()));
    let script = output(&["completions", "bash", "--for", command]).stdout;
    let script = folder.file("script", &String::from_utf8(script).unwrap(), 0o644);
    folder.file("machine.toml", "", 0o644);
    let play = r#"source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        "_$1" "$1" "${@: -1}" "${@: -2:1}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let play = ["-c", play, "bash", script.to_str().unwrap(), command];
    let job = crate::common::command("bash").arguments(&play);
    let job = job.arguments(words).current_dir(&folder.0).finish();
    job.code(0).silent();
    job.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_machines_and_habits() {
    let offered = |command, words: &[&str], expected: &[&str]| {
        let found = completed(command, words);
        for word in expected {
            assert!(found.iter().any(|one| one == word), "{words:?}: {found:?}");
        }
        found
    };
    let all = offered(
        "mpiexec",
        &["--fabric", ""],
        &["qdr", "edr", "machine.toml"],
    );
    assert!(all.len() > 20, "{all:?}");
    let few = offered("fishplate", &["run", "--fabric", "ed"], &["edr"]);
    assert!(few.len() < 8, "{few:?}");
    let next = ["compare", "--fabrics", "qdr,ed"];
    let next = offered("fishplate", &next, &["qdr,edr"]);
    assert!(
        next.iter().all(|word| word.starts_with("qdr,ed")),
        "{next:?}"
    );
    offered("fishplate", &["fabric", "explain", "qd"], &["qdr"]);
    offered("mpirun", &["-hostf"], &["-hostfile"]);
    offered("mpiexec", &["-machine"], &["-machinefile"]);
    offered("mpiexec", &["-hostfile", "mach"], &["machine.toml"]);
    offered("mpiexec", &["-fabric", "qd"], &["qdr"]);
    assert_eq!(completed("mpiexec", &["--hostf"]), ["--hostfile"]);
}

#[test]
fn completions_and_man_pages_come_from_the_command_line() {
    for (shell, name) in [
        ("bash", "mpiexec"),
        ("zsh", "fishplate"),
        ("fish", "mpirun"),
    ] {
        let text = output(&["completions", shell, "--for", name]).stdout;
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains(name) && text.contains("timeout"),
            "{shell}: {text}"
        );
    }
    let folder = std::env::temp_dir().join(format!("fishplate-man-{}", std::process::id()));
    let written = output(&["man", folder.to_str().unwrap()]);
    assert!(written.status.success());
    let page = std::fs::read_to_string(folder.join("fishplate-bench-latency.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("message"), "{page}");
    assert!(folder.join("mpiexec.1").exists() && !folder.join("fishplate-man.1").exists());
    std::fs::remove_dir_all(folder).unwrap();
}
