//! `ferroflow run` over network namespaces.

use crate::common::netns::Cable;
use crate::common::{PROGRAM, ferroflow, task};
use crate::example::{self, Example};
use ferroflow_testing::this_test;

pub fn a_cluster_works_together_on_several_hosts() {
    if task::is_done() {
        return;
    }
    let cable = Cable::between_two();
    let hosts = format!("{}:1,{}:2", cable.near(), cable.far());
    let shell = ["-H", hosts.as_str(), "--rsh", "ip netns exec {host} sh -c"];
    let out = task::job(this_test!(), &shell);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
    assert!(said.contains(&format!("[ps 0] ready grpcs://{}:", cable.near())), "{said}");
    assert!(said.contains("[worker 1] all have added\n"), "{said}");
    // The error names the host of a failed process.
    let job = [&["--ps", "1", "--workers", "1"][..], &shell, &["--", "sh", "-c", "exit 3"]];
    let out = ferroflow(&[&["run"], &job.concat()[..]].concat()).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{errors}");
    assert!(errors.contains(&format!(" on {}) was the first to fail", cable.far())), "{errors}");
}

pub fn our_launcher_runs_the_example_on_two_hosts() {
    let (cable, train) = (Cable::between_two(), Example::new());
    let hosts = format!("{}:1,{}:1", cable.near(), cable.far());
    let job = ["run", "-H", &hosts, "--rsh", "ip netns exec {host} sh -c", "--"];
    example::check(&ferroflow(&job).args(train.words()).output().unwrap());
}

/// The launcher hands out certificates, and the ranks refuse to listen without them.
pub fn ranks_of_several_hosts_reduce_over_tls() {
    let cable = Cable::between_two();
    let hosts = format!("{}:1,{}:1", cable.near(), cable.far());
    let shell = ["-H", hosts.as_str(), "--rsh", "ip netns exec {host} sh -c"];
    let bench = ["bench", "allreduce", "--sizes", "4,1MiB", "--seconds", "0.05", "--json"];
    let rank = [&["--", PROGRAM], &bench[..]].concat();
    for more in [&[][..], &["--insecure"]] {
        let job = [&["run"], &shell[..], more, &rank].concat();
        let out = ferroflow(&job).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{more:?}: {said}{errors}");
        assert_eq!(said.lines().filter(|line| line.contains("\"n\":2")).count(), 2, "{said}");
    }
    // The same ranks without credentials.
    let alone = ["env", "-u", "FERROFLOW_CREDENTIALS"];
    let job = [&["run"], &shell[..], &["--"], &alone, &rank[1..]].concat();
    let out = ferroflow(&job).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && errors.contains("FERROFLOW_CREDENTIALS=DIR"), "{errors}");
}

pub fn ranks_get_an_address_that_other_hosts_reach() {
    let cable = Cable::from_here();
    let hosts = format!("localhost:1,{}:1", cable.far());
    let shell = ["--rsh", "ip netns exec {host} sh -c"];
    let job = [&["run", "-H", &hosts][..], &shell, &["--", "sh", "-c", "echo $MASTER_ADDR"]];
    let out = ferroflow(&job.concat()).output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    let near = cable.near();
    assert_eq!(lines, [format!("[0] {near}"), format!("[1] {near}")]);
}
