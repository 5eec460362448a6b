//! Tests of the rank's end of the control socket.

use std::os::fd::OwnedFd;

use pmi::{
    Bootstrap, FromRank, Hosts, Job, KEY_LIMIT, KvsError, LauncherGone, Notice, RankStatus,
    UnexpectedMessage, VALUE_LIMIT, WaitCondition, WaitReason,
};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, recv, send};

use crate::control_socket;

fn pair() -> (OwnedFd, Job) {
    let (launcher, rank) = control_socket(SocketFlags::CLOEXEC);
    (launcher, Job::new(0, Hosts::one(1), rank, None))
}

/// All lines that the launcher's end has received.
fn lines(launcher: &OwnedFd) -> Vec<FromRank> {
    let mut lines = Vec::new();
    let mut packet = vec![0; 1 << 16];
    while let Ok((_, length @ 1..)) = recv(launcher, &mut packet[..], RecvFlags::DONTWAIT) {
        let text = std::str::from_utf8(&packet[..length]).unwrap();
        lines.extend(
            text.lines()
                .map(|line| line.parse::<FromRank>().expect(line)),
        );
    }
    lines
}

fn status(unexpected: usize) -> RankStatus {
    let on = |communicator: &str, condition| WaitReason {
        condition,
        communicator: communicator.to_string(),
        is_remote: communicator == "workers",
    };
    RankStatus {
        operation: "MPI_Waitall".into(),
        progress: 1200,
        waits: vec![
            on(
                "MPI_COMM_WORLD",
                WaitCondition::From {
                    peer: Some(3),
                    tag: Some(7),
                },
            ),
            on(
                "halo exchange 100%\n",
                WaitCondition::From {
                    peer: None,
                    tag: None,
                },
            ),
            on("größe", WaitCondition::To { peer: 2, tag: 0 }),
            on("", WaitCondition::All),
            on("", WaitCondition::User),
            on("workers", WaitCondition::To { peer: 1, tag: 3 }),
        ],
        unexpected: (0..unexpected)
            .map(|from| UnexpectedMessage {
                from,
                tag: 9,
                communicator: "a=b c".into(),
                is_remote: from % 2 == 1,
                bytes: 64,
            })
            .collect(),
    }
}

#[test]
fn what_a_rank_says_arrives() {
    let (launcher, control) = pair();
    control.notify(Notice::Initialized).unwrap();
    control.notify(Notice::Lock(usize::MAX)).unwrap();
    control.abort(-3, "two\nlines \u{1b}[31m").unwrap();
    control.notify(Notice::Fault { code: 7, text: "" }).unwrap();
    let procedure = "MPI_File_open";
    control.notify(Notice::Unsupported(procedure)).unwrap();
    control.notify(Notice::Finalized).unwrap();
    let expected = [
        FromRank::Init {
            pid: std::process::id(),
        },
        FromRank::Lock { address: u64::MAX },
        FromRank::Abort {
            code: -3,
            message: "two lines \\x1b[31m".into(),
        },
        FromRank::Fault {
            code: 7,
            text: "".into(),
        },
        FromRank::Unsupported {
            procedure: procedure.into(),
        },
        FromRank::Finalize,
    ];
    assert_eq!(lines(&launcher), expected);
}

#[test]
fn a_status_survives_the_way_even_when_it_is_long() {
    for unexpected in [0, 1, 3000] {
        let (launcher, control) = pair();
        let sent = status(unexpected);
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            let mut packet = vec![0; 1 << 16];
            loop {
                let (_, length) = recv(&launcher, &mut packet[..], RecvFlags::empty()).unwrap();
                for line in std::str::from_utf8(&packet[..length]).unwrap().lines() {
                    match line.parse().unwrap() {
                        FromRank::Status { text: line } => text.push(line),
                        FromRank::StatusEnd => return text.join("\n"),
                        other => panic!("{other:?}"),
                    }
                }
            }
        });
        control.notify(Notice::Status(&sent)).unwrap();
        assert_eq!(reader.join().unwrap().parse::<RankStatus>().unwrap(), sent);
    }
}

#[test]
fn a_status_reads_as_a_sentence() {
    let mut status = status(2);
    assert_eq!(
        status.unexpected[0].sentence(),
        "64 bytes from 0 tag 9 on a=b c"
    );
    assert_eq!(
        status.unexpected[1].sentence(),
        "64 bytes from 1 of the remote group tag 9 on a=b c"
    );
    status.waits.rotate_right(1);
    status.waits.truncate(2);
    assert_eq!(
        status.sentence(),
        "MPI_Waitall: to 1 of the remote group tag 3 on workers, \
         from 3 tag 7 on MPI_COMM_WORLD"
    );
    status.waits.rotate_left(1);
    status.waits.truncate(1);
    assert_eq!(
        status.sentence(),
        "MPI_Waitall from 3 tag 7 on MPI_COMM_WORLD"
    );
    status.waits = vec![
        WaitReason {
            condition: WaitCondition::All,
            communicator: "C".into(),
            is_remote: false,
        };
        6
    ];
    assert_eq!(
        status.sentence(),
        "MPI_Waitall: on C, on C, on C, on C, and 2 more"
    );
    status.waits.truncate(1);
    status.waits[0].condition = WaitCondition::User;
    assert_eq!(
        status.sentence(),
        "MPI_Waitall for a generalised request (MPI_Grequest_complete)"
    );
    status.waits.clear();
    assert_eq!(status.sentence(), "MPI_Waitall");
}

#[test]
fn a_line_that_is_no_status_is_named() {
    for line in [
        "",
        "op=MPI_Recv",
        "waits from=x tag=1 comm=c",
        "waits from=1 tag=1 comm=c group=local",
        "unexpected from=1",
        "op=%zz progress=1",
        "op=%8 progress=1",
    ] {
        let bad = format!("op=MPI_Recv progress=1\n{line}x\n");
        assert!(bad.parse::<RankStatus>().is_err(), "{bad}");
    }
}

#[test]
fn a_request_is_read_once_and_nonsense_is_passed_over() {
    let (launcher, control) = pair();
    assert_eq!(control.status_requested(), Ok(false));
    send(&launcher, b"dance\nreport\nreport\n", SendFlags::empty()).unwrap();
    assert_eq!(control.status_requested(), Ok(true));
    assert_eq!(control.status_requested(), Ok(true));
    assert_eq!(control.status_requested(), Ok(false));
}

#[test]
fn the_death_of_the_launcher_is_told_and_kills_nobody() {
    let (launcher, control) = pair();
    control.notify(Notice::Initialized).unwrap();
    drop(launcher);
    assert_eq!(control.status_requested(), Err(LauncherGone::Dead));
    assert_eq!(
        control.next_value(),
        Err(KvsError::Gone(LauncherGone::Dead))
    );
    assert_eq!(control.notify(Notice::Finalized), Err(LauncherGone::Dead));
}

#[test]
fn a_launcher_that_does_not_read_holds_a_rank_for_a_second_at_most() {
    let (_launcher, control) = pair();
    let outcome = (0..1_000_000)
        .map(|_| {
            control.notify(Notice::Fault {
                code: 1,
                text: &"x".repeat(4000),
            })
        })
        .find(Result::is_err);
    assert_eq!(outcome, Some(Err(LauncherGone::Dead)));
}

#[test]
fn what_is_put_and_asked_arrives_up_to_the_limits() {
    let (launcher, control) = pair();
    let (key, value) = ("k".repeat(KEY_LIMIT), "v".repeat(VALUE_LIMIT));
    control.put(&key, &value).unwrap();
    control.put("empty", "").unwrap();
    control.get("a=b,c").unwrap();
    let put = |key: &str, value: &str| FromRank::Put {
        key: key.into(),
        value: value.into(),
    };
    let expected = [
        put(&key, &value),
        put("empty", ""),
        FromRank::Get {
            key: "a=b,c".into(),
        },
    ];
    assert_eq!(lines(&launcher), expected);
}

#[test]
fn what_is_no_key_or_value_is_refused_with_the_reason() {
    let (launcher, control) = pair();
    let long = "x".repeat(VALUE_LIMIT + 1);
    let cases = [
        (control.put("", "v"), "printable"),
        (control.put("a b", "v"), "\"a b\""),
        (
            control.put("key", "line\nline"),
            "the value of the key \"key\"",
        ),
        (control.put("key", "größe"), "hexadecimal"),
        (
            control.put("key", &long),
            "3073 bytes, but a value of the job's key-value store has at most 3072",
        ),
        (
            control.get(&long[..KEY_LIMIT + 1]),
            "129 bytes, but a key of the job's key-value store has at most 128",
        ),
        (control.get("tab\t"), "printable"),
    ];
    for (outcome, expected) in cases {
        let message = outcome.expect_err(expected).to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(lines(&launcher), []);
}

#[test]
fn answers_and_requests_do_not_hide_each_other() {
    let (launcher, control) = pair();
    assert_eq!(control.next_value(), Ok(None));
    let long = "v".repeat(VALUE_LIMIT);
    let first = format!("report\nvalue a {long}\nvalue b\n");
    for packet in [first.as_str(), "report\n", "value c 3\n"] {
        send(&launcher, packet.as_bytes(), SendFlags::empty()).unwrap();
    }
    let answer = |key: &str, value: &str| Ok(Some((key.to_string(), value.to_string())));
    assert_eq!(control.next_value(), answer("a", &long));
    assert_eq!(control.status_requested(), Ok(true));
    assert_eq!(control.status_requested(), Ok(true));
    assert_eq!(control.status_requested(), Ok(false));
    assert_eq!(control.next_value(), answer("b", ""));
    assert_eq!(control.next_value(), answer("c", "3"));
    assert_eq!(control.next_value(), Ok(None));
}

#[test]
fn a_fence_is_entered_once_and_completed_once() {
    let (launcher, control) = pair();
    control.put("key", "value").unwrap();
    control.enter_fence().unwrap();
    assert_eq!(control.enter_fence(), Err(KvsError::InFence));
    assert_eq!(control.fence_is_complete(), Ok(false));
    let put = FromRank::Put {
        key: "key".into(),
        value: "value".into(),
    };
    assert_eq!(lines(&launcher), [put, FromRank::Fence]);
    send(&launcher, b"report\nfence\n", SendFlags::empty()).unwrap();
    assert_eq!(control.fence_is_complete(), Ok(true));
    assert_eq!(control.fence_is_complete(), Ok(false));
    assert_eq!(control.status_requested(), Ok(true));
    control.enter_fence().unwrap();
    drop(launcher);
    assert_eq!(control.fence(), Err(KvsError::InFence));
    assert_eq!(
        control.fence_is_complete(),
        Err(KvsError::Gone(LauncherGone::Dead))
    );
}

#[test]
fn a_fence_blocks_until_the_launcher_ends_it() {
    let (launcher, control) = pair();
    let launcher = std::thread::spawn(move || {
        while !lines(&launcher).contains(&FromRank::Fence) {
            std::thread::yield_now();
        }
        send(&launcher, b"fence\n", SendFlags::empty()).unwrap();
        launcher
    });
    control.fence().unwrap();
    drop(launcher.join().unwrap());
    assert_eq!(control.fence(), Err(KvsError::Gone(LauncherGone::Dead)));
}

#[test]
fn bytes_survive_as_digits() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(pmi::unhex(&pmi::hex(&all)), Some(all));
    assert_eq!(pmi::hex(&[0, 0x7f, 0xff]), "007fff");
    assert_eq!(pmi::unhex(""), Some(vec![]));
    for wrong in ["0", "0g", "+1", "0x", "é"] {
        assert_eq!(pmi::unhex(wrong), None, "{wrong}");
    }
}
