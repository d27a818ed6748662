//! The memory limit of the control group that this process is in.
//!
//! Groups are nested, and each can have a limit; the least one counts. Supports both versions of
//! control groups, also side by side. In a container, the mount may show only a part of the tree,
//! whose root `mountinfo` names.

use std::path::{Path, PathBuf};

/// The least limit in bytes of the process's control groups. `None` if they have none.
pub(crate) fn memory_limit() -> Option<usize> {
    memory_limit_in(Path::new("/"))
}

/// The same in the file system tree `root`.
fn memory_limit_in(root: &Path) -> Option<usize> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    mounts.lines().filter_map(GroupMount::parse).filter_map(|m| m.limit(&groups, root)).min()
}

/// A mounted tree of control groups that limit memory.
struct GroupMount {
    is_v2: bool,
    /// The group at the mount point.
    group: String,
    point: PathBuf,
}

impl GroupMount {
    /// Parses a line of `mountinfo`: `36 35 98:0 /group /point rw,noatime … - type source options`.
    fn parse(line: &str) -> Option<GroupMount> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (kind, options) = (kind.next()?, kind.nth(1).unwrap_or_default());
        let is_v2 = kind == "cgroup2";
        let is_v1 = kind == "cgroup" && options.split(',').any(|o| o == "memory");
        let mut mount = mount.split(' ').skip(3);
        let (group, point) = (mount.next()?.to_string(), PathBuf::from(mount.next()?));
        (is_v1 || is_v2).then_some(GroupMount { is_v2, group, point })
    }

    fn limit(&self, groups: &str, root: &Path) -> Option<usize> {
        let own = groups.lines().find_map(|line| self.group_in(line))?;
        let rest = Path::new(own).strip_prefix(&self.group).unwrap_or(Path::new(""));
        let point = root.join(self.point.strip_prefix("/").ok()?);
        let files: &[&str] = match self.is_v2 {
            true => &["memory.max", "memory.high"],
            false => &["memory.limit_in_bytes"],
        };
        let of_group = |group: &Path| {
            let limits = files.iter().filter_map(|file| limit_in(&point.join(group).join(file)));
            limits.min()
        };
        rest.ancestors().filter_map(of_group).min()
    }

    /// The group of a line of `/proc/self/cgroup`, if the line is about this tree:
    /// `0::/group`, or `4:memory:/group`.
    fn group_in<'l>(&self, line: &'l str) -> Option<&'l str> {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        let is_ours = match self.is_v2 {
            true => number == "0" && controllers.is_empty(),
            false => controllers.split(',').any(|c| c == "memory"),
        };
        is_ours.then_some(group)
    }
}

/// The number in a file; `None` for `max`. The first version writes almost `i64::MAX` instead.
fn limit_in(file: &Path) -> Option<usize> {
    let bytes: usize = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (bytes < 1 << 60).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of files for one test.
    fn limit(name: &str, files: &[(&str, &str)]) -> Option<usize> {
        let root = std::env::temp_dir().join(format!("ferroflow-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = memory_limit_in(&root);
        std::fs::remove_dir_all(&root).unwrap();
        found
    }

    const V2: (&str, &str) =
        ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");

    #[test]
    fn the_least_limit_of_nested_groups_counts() {
        let files = [
            V2,
            ("proc/self/cgroup", "0::/jobs/mine\n"),
            ("sys/fs/cgroup/jobs/memory.max", "3000\n"),
            ("sys/fs/cgroup/jobs/mine/memory.max", "max\n"),
        ];
        assert_eq!(limit("nested", &files), Some(3000));
        let tighter = [&files[..3], &[("sys/fs/cgroup/jobs/mine/memory.max", "2000")]].concat();
        assert_eq!(limit("tighter", &tighter), Some(2000));
        let high = [&tighter[..], &[("sys/fs/cgroup/jobs/mine/memory.high", "1000")]].concat();
        assert_eq!(limit("high", &high), Some(1000));
    }

    #[test]
    fn groups_without_a_limit_have_none() {
        let files =
            [V2, ("proc/self/cgroup", "0::/mine\n"), ("sys/fs/cgroup/mine/memory.max", "max\n")];
        assert_eq!(limit("none", &files), None);
        assert_eq!(limit("nothing", &[("proc/self/cgroup", "0::/\n")]), None);
    }

    #[test]
    fn the_first_version_is_understood() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 23 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n";
        let files = [
            ("proc/self/mountinfo", mounts),
            ("proc/self/cgroup", "5:cpu:/other\n4:memory:/jobs/mine\n0::/unified\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
            ("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "5000"),
            ("sys/fs/cgroup/memory/jobs/mine/memory.limit_in_bytes", "9223372036854771712"),
        ];
        assert_eq!(limit("first", &files), Some(5000));
    }

    #[test]
    fn a_container_sees_its_group_at_the_mount_point() {
        let mounts = "31 23 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let files = [
            ("proc/self/mountinfo", mounts),
            ("proc/self/cgroup", "4:memory:/docker/abc/inner\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "7000"),
            ("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "6000"),
        ];
        assert_eq!(limit("container", &files), Some(6000));
        // With its own namespace the path is relative to it.
        let files = [V2, ("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "4000\n")];
        assert_eq!(limit("namespace", &files), Some(4000));
    }
}
