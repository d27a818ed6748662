//! Ranks that the launchers of MPI start on two hosts, which are network namespaces. No variable
//! holds the address of rank 0: the ranks exchange it through the launcher.

use crate::common::netns::Cable;
use crate::common::{PROGRAM, folder};
use crate::example::{self, Example};
use ferroflow_testing::needs::MPIRUN_ENVIRONMENT;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const BENCH: [&str; 7] = ["bench", "allreduce", "--sizes", "4,1MiB", "--seconds", "0.02", "--json"];

/// A program that runs a command on another host, in place of ssh: `AGENT [-x] HOST COMMAND…`.
struct Agent(PathBuf);

impl Agent {
    fn new() -> Agent {
        let folder = folder("agent");
        let program = folder.join("agent");
        let script = "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\n\
                      exec ip netns exec \"$host\" sh -c \"$*\"\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        Agent(program)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

/// A launcher on the near end of a cable.
fn launcher(cable: &Cable, words: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", cable.near()]).args(words).stdin(Stdio::null());
    for name in ["FERROFLOW_ADDRESS", "FERROFLOW_CREDENTIALS", "FERROFLOW_INSECURE", "MASTER_ADDR"]
    {
        command.env_remove(name);
    }
    command
}

fn mpich(cable: &Cable, agent: &Agent) -> Command {
    let hosts = format!("{},{}", cable.near(), cable.far());
    let by = ["-launcher", "ssh", "-launcher-exec", agent.path()];
    let mut command = launcher(cable, &["mpiexec.hydra", "-localhost", cable.near()]);
    command.args(by).args(["-hosts", &hosts, "-ppn", "1", "-np", "2"]);
    command
}

/// Checks that two ranks on two hosts reduced two sizes.
fn check(out: &Output) {
    let (said, errors) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{said}{errors}");
    let lines = said.lines().filter_map(|line| serde_json::from_str(line).ok());
    let figures: Vec<serde_json::Value> = lines.collect();
    assert_eq!(figures.len(), 2, "{said}{errors}");
    for line in figures {
        assert_eq!((&line["n"], &line["links"]), (&2.into(), &"tcp".into()), "{said}");
    }
}

pub fn open_mpi_runs_the_example_on_two_hosts() {
    let (cable, agent, train) = (Cable::between_two(), Agent::new(), Example::new());
    let hosts = format!("{}:1,{}:1", cable.near(), cable.far());
    let mut command = launcher(&cable, &["mpirun.openmpi", "--mca", "plm_rsh_agent", agent.path()]);
    command.envs(MPIRUN_ENVIRONMENT).args(["-H", &hosts, "-np", "2"]).args(train.words());
    example::check(&command.output().unwrap());
}

pub fn mpich_runs_the_example_on_two_hosts() {
    let (cable, agent, train) = (Cable::between_two(), Agent::new(), Example::new());
    example::check(&mpich(&cable, &agent).args(train.words()).output().unwrap());
}

pub fn ranks_choose_the_interface_that_reaches_the_others() {
    let (cable, agent) = (Cable::between_two(), Agent::new());
    cable.add_same_address("bridge0", "172.31.255.1/24");
    let out = mpich(&cable, &agent).arg(PROGRAM).args(BENCH).output().unwrap();
    check(&out);
    let errors = String::from_utf8_lossy(&out.stderr);
    let expected = format!("the ranks reach rank 0 at {} (", cable.near());
    assert!(errors.contains(&expected), "{errors}");
    assert!(errors.contains("not used: 172.31.255.1 (bridge0)"), "{errors}");
}
