//! The state of the machine at a moment: load, time that a hypervisor stole, time for which a CPU
//! quota throttled this process.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Disturbances;

/// The state of the machine at a moment. Two of them give the disturbances between them.
#[derive(Clone, Debug)]
pub struct Moment {
    at: Instant,
    /// The load average of the last minute: tasks that ran or were ready to run.
    load: f64,
    ticks: Ticks,
    /// The time for which CPU quotas have stopped the processes in the control groups of this
    /// process, since these groups exist.
    throttled: Duration,
}

/// Clock ticks of all processors since the boot of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ticks {
    all: u64,
    /// The ticks that the hypervisor gave to other machines.
    stolen: u64,
}

impl Moment {
    /// Reads the processor times of the machine at this moment.
    pub fn now() -> Moment {
        let read = |path: &str| read_to_string(path).unwrap_or_default();
        Moment {
            at: Instant::now(),
            load: load(&read("/proc/loadavg")).unwrap_or(0.0),
            ticks: ticks(&read("/proc/stat")).unwrap_or_default(),
            throttled: throttled_here(&read("/proc/self/cgroup")),
        }
    }

    /// Disturbances of the whole machine between an earlier moment and this one. The load average
    /// is that of the earlier moment, because the measurement itself raises the later one.
    pub fn since(&self, earlier: &Moment) -> Disturbances {
        let passed = self.ticks.all.saturating_sub(earlier.ticks.all);
        let stolen = self.ticks.stolen.saturating_sub(earlier.ticks.stolen);
        let throttled = self.throttled.saturating_sub(earlier.throttled);
        Disturbances {
            load: earlier.load,
            processors: std::thread::available_parallelism().map_or(1, |count| count.get()),
            stolen: stolen as f64 / passed.max(1) as f64,
            throttled: throttled.as_secs_f64(),
            seconds: self.at.saturating_duration_since(earlier.at).as_secs_f64(),
            ..Disturbances::default()
        }
    }
}

/// The load average of the last minute, from the text of `/proc/loadavg`.
fn load(text: &str) -> Option<f64> {
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    load.is_finite().then_some(load)
}

/// The sums over all processors, from the text of `/proc/stat`. Its columns: user, nice, system,
/// idle, I/O wait, interrupts, soft interrupts, stolen, and guests. Guests are part of user
/// already.
fn ticks(text: &str) -> Option<Ticks> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let numbers = line.split_whitespace().skip(1).take(8);
    let numbers: Option<Vec<u64>> = numbers.map(|word| word.parse().ok()).collect();
    let numbers = numbers?;
    Some(Ticks {
        all: numbers.iter().sum(),
        stolen: numbers.get(7).copied().unwrap_or(0),
    })
}

/// The longest throttled time among the control groups of this process and those above them.
fn throttled_here(groups: &str) -> Duration {
    let folders = groups.lines().flat_map(folders);
    let texts = folders.filter_map(|folder| read_to_string(folder.join("cpu.stat")).ok());
    texts
        .filter_map(|text| throttled(&text))
        .max()
        .unwrap_or_default()
}

/// The folders that may hold a CPU quota, for one line `ID:CONTROLLERS:PATH` of
/// `/proc/self/cgroup`: the group and all groups above it. In version 2 CONTROLLERS is empty.
fn folders(line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':');
    let (_, Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
        return Vec::new();
    };
    let root = Path::new("/sys/fs/cgroup");
    let roots = match controllers {
        "" => vec![root.to_owned(), root.join("unified")],
        some if some.split(',').any(|one| one == "cpu") => {
            vec![root.join(some), root.join("cpu")]
        }
        _ => Vec::new(),
    };
    let path = Path::new(path.trim_start_matches('/'));
    let above = |root: PathBuf| path.ancestors().map(move |part| root.join(part));
    roots.into_iter().flat_map(above).collect()
}

/// The throttled time, from the text of `cpu.stat`: `throttled_usec` in version 2 of control
/// groups, `throttled_time` in nanoseconds in version 1.
fn throttled(text: &str) -> Option<Duration> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        let number = value.trim().parse().ok()?;
        match key {
            "throttled_usec" => Some(Duration::from_micros(number)),
            "throttled_time" => Some(Duration::from_nanos(number)),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_understood() {
        assert_eq!(load("7.25 6.10 5.02 9/320 4711\n"), Some(7.25));
        assert_eq!(load(""), None);
        let stat = "cpu  100 1 50 800 5 2 3 40 7 0\ncpu0 50 0 25 400 2 1 1 20 3 0\n";
        let (all, stolen) = (1001, 40);
        assert_eq!(ticks(stat), Some(Ticks { all, stolen }));
        assert_eq!(ticks("intr 5\n"), None);
        let second = "usage_usec 9\nnr_throttled 3\nthrottled_usec 2500\n";
        assert_eq!(throttled(second), Some(Duration::from_micros(2500)));
        let first = "nr_periods 9\nnr_throttled 3\nthrottled_time 2500\n";
        assert_eq!(throttled(first), Some(Duration::from_nanos(2500)));
        assert_eq!(throttled("nr_periods 9\n"), None);
    }

    #[test]
    fn quotas_are_found_in_both_versions_and_above() {
        let paths = |line| -> Vec<String> {
            let all = folders(line);
            all.iter().map(|path| path.display().to_string()).collect()
        };
        let second = paths("0::/user.slice/mine");
        assert!(second.contains(&"/sys/fs/cgroup/user.slice/mine".into()));
        assert!(second.contains(&"/sys/fs/cgroup/user.slice".into()));
        let first = paths("4:cpu,cpuacct:/docker/ab");
        assert!(first.contains(&"/sys/fs/cgroup/cpu,cpuacct/docker/ab".into()));
        assert!(first.contains(&"/sys/fs/cgroup/cpu/".into()));
        assert!(paths("7:memory:/docker/ab").is_empty());
        assert!(paths("nonsense").is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,80}") {
            let _ = (load(&text), ticks(&text), throttled(&text), folders(&text));
        }

        #[test]
        fn the_stolen_share_is_a_share(all in 0u64..1_000_000, part in 0.0..1.0f64) {
            let stolen = (all as f64 * part) as u64;
            let earlier = Moment::now();
            let before = earlier.ticks;
            let ticks = Ticks { all: before.all + all, stolen: before.stolen + stolen };
            let share = Moment { ticks, ..earlier.clone() }.since(&earlier).stolen;
            prop_assert!((0.0..=1.0).contains(&share));
        }
    }
}
