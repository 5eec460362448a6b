//! Tests of ranks of another launcher over PMI-1 and PMI-2, with a simulated launcher.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};

use knobs::{Knobs, PmiVersion};
use pmi::{Bootstrap, ForeignJob, Hosts, KvsError, LauncherGone, Notice, Started};

/// The state of a simulated launcher, with a record of each request.
struct Launcher {
    version: usize,
    mapping: String,
    values: Mutex<HashMap<String, String>>,
    fence: Fence,
    requests: Mutex<Vec<String>>,
}

/// A fence of all ranks. If a rank never enters it, it ends when all ranks have left.
struct Fence {
    ranks: usize,
    /// The number of entries of ranks, and true if all ranks have left.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Fence {
    fn new(ranks: usize) -> Fence {
        Fence {
            ranks,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Waits for the other ranks. False: they have left.
    fn wait(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        let complete = (state.0 / self.ranks + 1) * self.ranks;
        state.0 += 1;
        self.changed.notify_all();
        let waits = |state: &mut (usize, bool)| state.0 < complete && !state.1;
        let state = self.changed.wait_while(state, waits).unwrap();
        state.0 >= complete
    }

    fn close(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

impl Launcher {
    fn new(ranks: usize, version: usize, mapping: &str) -> Arc<Launcher> {
        Arc::new(Launcher {
            version,
            mapping: mapping.into(),
            values: Mutex::default(),
            fence: Fence::new(ranks),
            requests: Mutex::default(),
        })
    }

    fn requests(&self, command: &str) -> usize {
        let all = self.requests.lock().unwrap();
        all.iter().filter(|request| *request == command).count()
    }

    /// Answers the requests of one rank until it closes its socket.
    fn serve(&self, socket: &UnixStream) {
        let mut input = BufReader::new(socket.try_clone().unwrap());
        let mut output = socket;
        let mut is_counted = false;
        while let Some(fields) = request(&mut input, is_counted) {
            let command = fields["cmd"].clone();
            self.requests.lock().unwrap().push(command.clone());
            let answer = self.answer(&command, &fields);
            if answer.is_empty() {
                continue;
            }
            let text = match is_counted {
                false => format!("cmd={}\n", answer.replace(';', " ")),
                true => format!("{:6}cmd={answer};", answer.len() + 5),
            };
            is_counted |= command == "init" && fields["pmi_version"] == "2" && self.version == 2;
            if output.write_all(text.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, command: &str, fields: &HashMap<String, String>) -> String {
        match command {
            "init" => {
                let failed = usize::from(fields["pmi_version"] != self.version.to_string());
                let version = self.version;
                format!("response_to_init;pmi_version={version};pmi_subversion=1;rc={failed}")
            }
            "get_maxes" => "maxes;kvsname_max=256;keylen_max=64;vallen_max=60".into(),
            "get_my_kvsname" => "my_kvsname;kvsname=space".into(),
            "get_appnum" => "appnum;appnum=3".into(),
            "fullinit" => "fullinit-response;rank=0;size=9;appnum=3;rc=0".into(),
            "job-getid" => "job-getid-response;jobid=space;rc=0".into(),
            "info-getjobattr" => {
                let mapping = &self.mapping;
                format!("info-getjobattr-response;found=TRUE;value={mapping};rc=0")
            }
            "put" | "kvs-put" => {
                let (key, value) = (fields["key"].clone(), fields["value"].clone());
                let before = self.values.lock().unwrap().insert(key, value);
                let failed = i32::from(before.is_some());
                match command {
                    "put" => format!("put_result;rc={failed};msg=duplicate key"),
                    _ => format!("kvs-put-response;rc={failed}"),
                }
            }
            "get" if fields["key"] == "PMI_process_mapping" => {
                format!("get_result;rc=0;value={}", self.mapping)
            }
            "get" => match self.values.lock().unwrap().get(&fields["key"]) {
                Some(value) => format!("get_result;rc=0;msg=success;value={value}"),
                None => "get_result;rc=-1;msg=key_not_found".into(),
            },
            "kvs-get" => match self.values.lock().unwrap().get(&fields["key"]) {
                Some(value) => format!("kvs-get-response;found=TRUE;value={value};rc=0"),
                None => "kvs-get-response;found=FALSE;rc=0".into(),
            },
            "barrier_in" | "kvs-fence" if !self.fence.wait() => String::new(),
            "barrier_in" => "barrier_out;rc=0".into(),
            "kvs-fence" => "kvs-fence-response;rc=0".into(),
            "finalize" if self.version == 1 => "finalize_ack".into(),
            "finalize" => "finalize-response;rc=0".into(),
            "abort" => String::new(),
            other => panic!("request {other}"),
        }
    }
}

/// The next request of a rank. `None` after its end.
fn request(input: &mut impl BufRead, is_counted: bool) -> Option<HashMap<String, String>> {
    let (text, sign) = match is_counted {
        false => {
            let mut line = String::new();
            input.read_line(&mut line).ok()?;
            (line, ' ')
        }
        true => {
            let mut head = [0; 6];
            input.read_exact(&mut head).ok()?;
            let length = std::str::from_utf8(&head).unwrap().trim().parse();
            let mut body = vec![0; length.unwrap()];
            input.read_exact(&mut body).ok()?;
            (String::from_utf8(body).unwrap(), ';')
        }
    };
    let words = text.trim_end().split(sign);
    let fields = words.filter_map(|word| word.split_once('='));
    let fields: HashMap<_, _> = fields
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    (!fields.is_empty()).then_some(fields)
}

fn start(
    rank: usize,
    size: usize,
    socket: UnixStream,
    wanted: PmiVersion,
) -> Result<Arc<ForeignJob>, pmi::Error> {
    let socket = OwnedFd::from(socket);
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).unwrap();
    let vars = [
        ("PMI_FD", socket.into_raw_fd()),
        ("PMI_RANK", rank as i32),
        ("PMI_SIZE", size as i32),
    ];
    let vars = vars.map(|(name, value)| (name.to_string(), value.to_string()));
    let knobs = Knobs {
        pmi: wanted,
        ..Knobs::default()
    };
    match pmi::start(vars.into_iter(), &knobs)? {
        Started::Foreign(job) => Ok(job),
        other => panic!("{other:?}"),
    }
}

/// Runs `body` in every rank of a job whose launcher speaks PMI `version`.
fn job(
    version: usize,
    wanted: PmiVersion,
    size: usize,
    mapping: &str,
    body: impl Fn(&ForeignJob) + Sync,
) -> Arc<Launcher> {
    let launcher = Launcher::new(size, version, mapping);
    std::thread::scope(|scope| {
        let mut ranks = Vec::new();
        for rank in 0..size {
            let (own, theirs) = UnixStream::pair().unwrap();
            let (launcher, body) = (&launcher, &body);
            scope.spawn(move || launcher.serve(&theirs));
            ranks.push(scope.spawn(move || body(&start(rank, size, own, wanted).unwrap())));
        }
        let ended: Vec<_> = ranks.into_iter().map(|rank| rank.join()).collect();
        launcher.fence.close();
        ended.into_iter().for_each(|rank| rank.unwrap());
    });
    launcher
}

fn value(job: &ForeignJob, key: &str) -> Result<String, KvsError> {
    job.get(key)?;
    loop {
        if let Some((found, value)) = job.next_value()? {
            assert_eq!(found, key);
            return Ok(value);
        }
    }
}

#[test]
fn ranks_share_a_secret_the_memory_of_their_host_and_values_with_one_fence_each() {
    let long = "0123456789".repeat(20);
    for (version, wanted) in [
        (1, PmiVersion::One),
        (2, PmiVersion::Two),
        // If the launcher refuses a version, the rank tries the other one.
        (1, PmiVersion::Two),
        (2, PmiVersion::One),
    ] {
        let seen = Mutex::new(Vec::new());
        let launcher = job(version, wanted, 5, "(vector,(0,2,2),1)", |job| {
            assert_eq!(job.hosts(), &Hosts::parse("0*2,1*3", 5).unwrap());
            assert_eq!((job.size(), job.program()), (5, 3));
            assert_eq!(job.protocol(), format!("PMI-{version}"));
            let segment = rustix::fs::fstat(job.take_segment().expect("a segment")).unwrap();
            let secret = *job.secret().unwrap().as_bytes();
            let host = job.hosts().of(job.rank());
            seen.lock().unwrap().push((host, segment.st_ino, secret));
            assert!(!job.get_waits());
            job.put(
                &format!("card.{}", job.rank()),
                &format!("{long}={}", job.rank()),
            )
            .unwrap();
            job.fence().unwrap();
            let peer = (job.rank() + 1) % 5;
            assert_eq!(
                value(job, &format!("card.{peer}")),
                Ok(format!("{long}={peer}"))
            );
            assert_eq!(job.status_requested(), Ok(false));
            job.notify(Notice::Finalized).unwrap();
            assert_eq!(job.status_requested(), Ok(false), "its host may have ended");
        });
        let seen = seen.into_inner().unwrap();
        for one in &seen {
            for other in &seen {
                assert_eq!(one.2, other.2);
                assert_eq!(
                    one.0 == other.0,
                    one.1 == other.1,
                    "one segment on each host"
                );
            }
        }
        let count = |one: &str, two: &str| launcher.requests(if version == 1 { one } else { two });
        assert_eq!(count("barrier_in", "kvs-fence"), 2 * 5);
        assert_eq!(count("finalize", "finalize"), 5);
        // The secret, two segments, and five cards in parts: far fewer than one message for each
        // pair of ranks.
        let parts = if version == 1 { 4 } else { 1 };
        let secrets = if version == 1 { 2 } else { 1 };
        assert_eq!(count("put", "kvs-put"), secrets + 2 + 5 * parts);
        let mapping = if version == 1 { 5 } else { 0 };
        assert_eq!(
            count("get", "kvs-get"),
            mapping + 5 * secrets + 3 + 5 * parts
        );
    }
}

#[test]
fn a_rank_that_dies_before_a_fence_ends_it_for_those_of_its_host() {
    for version in [1, 2] {
        job(version, PmiVersion::Auto, 2, "(vector,(0,1,2))", |job| {
            // Rank 1 dies without a farewell.
            if job.rank() == 0 {
                let dead = LauncherGone::Idle { dead: 1 };
                assert_eq!(job.fence(), Err(KvsError::Gone(dead)));
            }
        });
    }
}

#[test]
fn a_value_that_nobody_has_put_and_a_launcher_that_dies_are_errors() {
    for version in [1, 2] {
        job(version, PmiVersion::Auto, 1, "(vector,(0,1,1))", |job| {
            let error = value(job, "card.0").unwrap_err();
            assert!(
                error.to_string().contains("no rank has put the key card.0"),
                "{error}"
            );
            assert!(
                value(job, "card")
                    .unwrap_err()
                    .to_string()
                    .contains("does not end with")
            );
            job.end_job(7);
        });
    }
    let launcher = Launcher::new(1, 1, "(vector,(0,1,1))");
    let (own, theirs) = UnixStream::pair().unwrap();
    let end = theirs.try_clone().unwrap();
    let serving = std::thread::spawn(move || launcher.serve(&theirs));
    let rank = start(0, 1, own, PmiVersion::One).unwrap();
    assert_eq!(rank.status_requested(), Ok(false));
    end.shutdown(std::net::Shutdown::Both).unwrap();
    serving.join().unwrap();
    assert_eq!(rank.status_requested(), Err(LauncherGone::Dead));
    assert_eq!(rank.fence(), Err(LauncherGone::Dead.into()));
}

#[test]
fn a_launcher_that_answers_nonsense_is_an_error_and_nothing_worse() {
    for (answer, expected) in [
        ("cmd=response_to_init pmi_version=3 rc=0\n", "but version 3"),
        (
            "cmd=hello\n",
            "it answers with hello instead of response_to_init",
        ),
        ("\n", "nothing instead of response_to_init"),
        (
            "cmd=response_to_init\0\x1b[2J\n",
            "instead of response_to_init",
        ),
    ] {
        let (own, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(answer.repeat(2).as_bytes()).unwrap();
        let error = start(0, 2, own, PmiVersion::One).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains(char::is_control), "{error}");
    }
    // A line that never ends.
    let (own, mut theirs) = UnixStream::pair().unwrap();
    let writer = std::thread::spawn(move || theirs.write_all(&vec![b'x'; 1 << 20]));
    let error = start(0, 2, own, PmiVersion::One).unwrap_err().to_string();
    assert!(
        error.contains("a message of more than 65536 bytes"),
        "{error}"
    );
    assert!(
        writer.join().unwrap().is_err(),
        "it has read no more than that"
    );
    for mapping in ["(vector,(0,1,0))", "nonsense"] {
        let launcher = Launcher::new(1, 2, mapping);
        let (own, theirs) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| launcher.serve(&theirs));
            let error = start(0, 2, own, PmiVersion::Two).unwrap_err().to_string();
            assert!(error.contains("which places no 2 ranks"), "{error}");
        });
    }
}
