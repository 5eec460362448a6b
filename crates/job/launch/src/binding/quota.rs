//! The limits on processor time that cgroups, of version 1 or 2, set for this process.

use std::path::{Component, Path, PathBuf};

/// The least limit on processor time from this process's own cgroup up to the root, in cores.
/// `None`: no limit. `root` is the folder that contains /proc and all mount points.
pub fn quota(root: &Path) -> Option<f64> {
    let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
    let limits = groups.lines().filter_map(|line| {
        // A line is NUMBER:CONTROLLERS:PATH; version 2 has no controllers.
        let (_, line) = line.split_once(':')?;
        let (controllers, path) = line.split_once(':')?;
        let version = match controllers {
            "" => Version::Two,
            list if list.split(',').any(|name| name == "cpu") => Version::One,
            _ => return None,
        };
        let mount = mounts.iter().find(|mount| mount.version == version)?;
        mount.limit(root, path)
    });
    limits.min_by(f64::total_cmp)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A mounted cgroup hierarchy with limits on processor time.
struct Mount {
    version: Version,
    /// The path, in the hierarchy, of the cgroup that is mounted at `point`.
    top: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// Parses a line of /proc/self/mountinfo. `None`: it is not such a hierarchy.
    fn parse(line: &str) -> Option<Mount> {
        let (place, system) = line.split_once(" - ")?;
        let place: Vec<&str> = place.split(' ').collect();
        let system: Vec<&str> = system.split(' ').collect();
        let version = match (*system.first()?, system.get(2)) {
            ("cgroup2", _) => Version::Two,
            ("cgroup", Some(options)) if options.split(',').any(|name| name == "cpu") => {
                Version::One
            }
            _ => return None,
        };
        Some(Mount {
            version,
            top: place.get(3)?.into(),
            point: place.get(4)?.into(),
        })
    }

    /// The least limit of the cgroup `path` and those above it, as far as they are mounted.
    fn limit(&self, root: &Path, path: &str) -> Option<f64> {
        let point = root.join(self.point.strip_prefix("/").ok()?);
        // In a container the path may lie outside the mounted part. Then the cgroup of this process
        // is the root of the mount.
        let below = Path::new(path)
            .strip_prefix(&self.top)
            .unwrap_or(Path::new(""));
        let is_plain = |part: Component| matches!(part, Component::Normal(_));
        let below = if below.components().all(is_plain) {
            below
        } else {
            Path::new("")
        };
        let groups = below.ancestors().map(|group| point.join(group));
        groups
            .filter_map(|group| self.version.limit(&group))
            .min_by(f64::total_cmp)
    }
}

impl Version {
    /// The limit of one cgroup on processor time, in cores.
    fn limit(self, group: &Path) -> Option<f64> {
        let read = |file| std::fs::read_to_string(group.join(file)).ok();
        let (quota, period) = match self {
            Version::One => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
            Version::Two => {
                let text = read("cpu.max")?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.into(), period.into())
            }
        };
        // "No limit" is `-1` in version 1, `max` in version 2.
        let microseconds = |text: String| text.trim().parse::<u64>().ok().filter(|&time| time > 0);
        Some(microseconds(quota)? as f64 / microseconds(period)? as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary folder with these files.
    fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        folder
    }

    const MOUNTS: &str = "\
        30 23 0:27 / /sys rw - sysfs sysfs rw\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct";

    #[test]
    fn the_least_limit_on_the_path_counts_in_version_2() {
        let folder = files(&[
            ("proc/self/mountinfo", MOUNTS),
            ("proc/self/cgroup", "0::/job/step/task"),
            ("sys/fs/cgroup/unified/job/cpu.max", "300000 100000"),
            ("sys/fs/cgroup/unified/job/step/cpu.max", "150000 100000"),
            ("sys/fs/cgroup/unified/job/step/task/cpu.max", "max 100000"),
            ("sys/fs/cgroup/unified/other/cpu.max", "1000 100000"),
        ]);
        assert_eq!(quota(folder.path()), Some(1.5));
    }

    #[test]
    fn the_least_limit_on_the_path_counts_in_version_1() {
        let folder = files(&[
            ("proc/self/mountinfo", MOUNTS),
            (
                "proc/self/cgroup",
                "3:cpuset:/a\n1:cpu,cpuacct:/docker/x\n0::/",
            ),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
            ("sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "200000"),
            ("sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "50000"),
            ("sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "-1"),
            ("sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000"),
        ]);
        assert_eq!(quota(folder.path()), Some(4.0));
    }

    #[test]
    fn in_a_container_the_top_of_the_mount_is_the_own_cgroup() {
        let mount = "32 31 0:29 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        for path in ["/docker/x", "/", "/../other"] {
            let folder = files(&[
                ("proc/self/mountinfo", mount),
                ("proc/self/cgroup", &format!("0::{path}")),
                ("sys/fs/cgroup/cpu.max", "50000 100000"),
            ]);
            assert_eq!(quota(folder.path()), Some(0.5), "{path}");
        }
    }

    #[test]
    fn no_limit() {
        for (file, text) in [
            ("cpu.max", "max 100000"),
            ("cpu.max", "x"),
            ("cpu.max", "0 0"),
        ] {
            let folder = files(&[
                ("proc/self/mountinfo", MOUNTS),
                ("proc/self/cgroup", "0::/"),
                (&format!("sys/fs/cgroup/unified/{file}"), text),
            ]);
            assert_eq!(quota(folder.path()), None, "{text}");
        }
        assert_eq!(quota(files(&[]).path()), None);
    }
}
