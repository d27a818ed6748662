//! The command lines of `horovodrun` and `mpirun`, as `ferroflow run` understands them: flags
//! besides its own, and a program without `--` in front.

use super::hosts::{self, Host, invalid};
use clap::Command;
use ferroflow::Result;
use std::ffi::OsString;

/// The effect of another launcher's flag.
#[derive(Clone, Copy)]
enum Meaning {
    /// A flag of this command with another name.
    Renamed(&'static str),
    /// Its value becomes this environment variable of all processes.
    Variable(&'static str),
    /// Its value in MiB becomes this environment variable, in bytes.
    Mebibytes(&'static str),
    /// It sets this environment variable to 1.
    Set(&'static str),
    /// The name and the value of an environment variable.
    NameAndValue,
    /// Names of environment variables, with commas between them.
    Names,
    /// A file with hosts.
    HostFile,
    /// Processes on each host.
    PerHost,
    /// One process on each host.
    OnePerHost,
    /// An option of ssh.
    Ssh(&'static str),
    /// No effect; the flag has this many values.
    Ignored(usize),
    /// No effect; the flag has a name and a value.
    IgnoredPair,
    /// The flag would change the processes of the job. The text is the advice to the user.
    Refused(&'static str),
}

use Meaning::{
    HostFile, Ignored, IgnoredPair, Mebibytes, NameAndValue, Names, OnePerHost, PerHost, Refused,
    Renamed, Set, Ssh, Variable,
};

/// Flags of horovodrun.
const HOROVODRUN: [(&str, Meaning); 63] = [
    ("-np", Renamed("--np")),
    ("--np", Renamed("--np")),
    ("--num-proc", Renamed("--np")),
    ("--min-num-proc", Renamed("--min-np")),
    ("--max-num-proc", Renamed("--max-np")),
    ("-H", Renamed("-H")),
    ("--hosts", Renamed("-H")),
    ("--hostfile", HostFile),
    ("--slots-per-host", PerHost),
    ("--ssh-port", Ssh("-p")),
    ("-p", Ssh("-p")),
    ("--ssh-identity-file", Ssh("-i")),
    ("-i", Ssh("-i")),
    ("--cycle-time-ms", Variable("HOROVOD_CYCLE_TIME")),
    ("--timeline-filename", Variable("HOROVOD_TIMELINE")),
    ("--stall-check-warning-time-seconds", Variable("HOROVOD_STALL_CHECK_TIME_SECONDS")),
    ("--stall-check-shutdown-time-seconds", Variable("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS")),
    ("--fusion-threshold-mb", Mebibytes("HOROVOD_FUSION_THRESHOLD")),
    ("--no-stall-check", Set("HOROVOD_STALL_CHECK_DISABLE")),
    ("--verbose", Set("FERROFLOW_VERBOSE")),
    ("--config-file", Refused("give its settings as flags or as HOROVOD_* variables with -x")),
    ("--check-build", Refused("`ferroflow --version` and `ferroflow devices` say what is there")),
    ("-cb", Refused("`ferroflow --version` and `ferroflow devices` say what is there")),
    ("--autotune", Ignored(0)),
    ("--no-autotune", Ignored(0)),
    ("--disable-cache", Ignored(0)),
    ("--gloo", Ignored(0)),
    ("--mpi", Ignored(0)),
    ("--jsrun", Ignored(0)),
    ("--tcp", Ignored(0)),
    ("--hierarchical-allreduce", Ignored(0)),
    ("--no-hierarchical-allreduce", Ignored(0)),
    ("--hierarchical-allgather", Ignored(0)),
    ("--no-hierarchical-allgather", Ignored(0)),
    ("--torus-allreduce", Ignored(0)),
    ("--no-torus-allreduce", Ignored(0)),
    ("--timeline-mark-cycles", Ignored(0)),
    ("--no-timeline-mark-cycles", Ignored(0)),
    ("--stall-check", Ignored(0)),
    ("--log-with-timestamp", Ignored(0)),
    ("--log-without-timestamp", Ignored(0)),
    ("--log-hide-timestamp", Ignored(0)),
    ("--no-log-hide-timestamp", Ignored(0)),
    ("--prefix-output-with-timestamp", Ignored(0)),
    ("-prefix-timestamp", Ignored(0)),
    ("--mpi-threads-disable", Ignored(0)),
    ("--no-mpi-threads-disable", Ignored(0)),
    ("--network-interfaces", Ignored(1)),
    ("--network-interface", Ignored(1)),
    ("--start-timeout", Ignored(1)),
    ("--cache-capacity", Ignored(1)),
    ("--autotune-log-file", Ignored(1)),
    ("--autotune-warmup-samples", Ignored(1)),
    ("--autotune-steps-per-sample", Ignored(1)),
    ("--autotune-bayes-opt-max-samples", Ignored(1)),
    ("--autotune-gaussian-process-noise", Ignored(1)),
    ("--log-level", Ignored(1)),
    ("--mpi-args", Ignored(1)),
    ("--binding-args", Ignored(1)),
    ("--num-nccl-streams", Ignored(1)),
    ("--gloo-timeout-seconds", Ignored(1)),
    ("--reset-limit", Ignored(1)),
    ("--blacklist-cooldown-range", Ignored(2)),
];

/// Flags of mpirun, of Open MPI and of MPICH, with one or two dashes. `ferroflow run` leaves the
/// choice of processors to the system, and that of the transport to `--transport`.
const MPIRUN: [(&str, Meaning); 92] = [
    ("c", Renamed("--np")),
    ("n", Renamed("--np")),
    ("host", Renamed("-H")),
    ("hosts", Renamed("-H")),
    ("hostfile", HostFile),
    ("machinefile", HostFile),
    ("default-hostfile", HostFile),
    ("f", HostFile),
    ("N", PerHost),
    ("npernode", PerHost),
    ("ppn", PerHost),
    ("perhost", PerHost),
    ("pernode", OnePerHost),
    ("env", NameAndValue),
    ("genv", NameAndValue),
    ("envlist", Names),
    ("genvlist", Names),
    ("wdir", Refused("change to that folder before this command")),
    ("wd", Refused("change to that folder before this command")),
    ("app", Refused("this command runs one program in all processes")),
    ("configfile", Refused("this command runs one program in all processes")),
    ("path", Refused("give the program with its folder, or pass PATH with -x")),
    ("allow-run-as-root", Ignored(0)),
    ("bind-to-core", Ignored(0)),
    ("bind-to-none", Ignored(0)),
    ("bind-to-socket", Ignored(0)),
    ("bycore", Ignored(0)),
    ("bynode", Ignored(0)),
    ("byslot", Ignored(0)),
    ("continuous", Ignored(0)),
    ("debug-daemons", Ignored(0)),
    ("disable-auto-cleanup", Ignored(0)),
    ("disable-recovery", Ignored(0)),
    ("display-allocation", Ignored(0)),
    ("display-devel-map", Ignored(0)),
    ("display-map", Ignored(0)),
    ("display-topo", Ignored(0)),
    ("do-not-resolve", Ignored(0)),
    ("enable-recovery", Ignored(0)),
    ("envall", Ignored(0)),
    ("envnone", Ignored(0)),
    ("genvall", Ignored(0)),
    ("genvnone", Ignored(0)),
    ("l", Ignored(0)),
    ("leave-session-attached", Ignored(0)),
    ("merge-stderr-to-stdout", Ignored(0)),
    ("nooversubscribe", Ignored(0)),
    ("novm", Ignored(0)),
    ("oversubscribe", Ignored(0)),
    ("prepend-rank", Ignored(0)),
    ("print-all-exitcodes", Ignored(0)),
    ("print-rank-map", Ignored(0)),
    ("q", Ignored(0)),
    ("quiet", Ignored(0)),
    ("report-bindings", Ignored(0)),
    ("report-child-jobs-separately", Ignored(0)),
    ("tag-output", Ignored(0)),
    ("timestamp-output", Ignored(0)),
    ("use-hwthread-cpus", Ignored(0)),
    ("v", Ignored(0)),
    ("verbose", Ignored(0)),
    ("xml", Ignored(0)),
    ("am", Ignored(1)),
    ("bind-to", Ignored(1)),
    ("bootstrap", Ignored(1)),
    ("bootstrap-exec", Ignored(1)),
    ("cpu-list", Ignored(1)),
    ("cpu-set", Ignored(1)),
    ("cpus-per-proc", Ignored(1)),
    ("cpus-per-rank", Ignored(1)),
    ("display", Ignored(1)),
    ("errfile-pattern", Ignored(1)),
    ("iface", Ignored(1)),
    ("launcher", Ignored(1)),
    ("launcher-exec", Ignored(1)),
    ("localhost", Ignored(1)),
    ("map-by", Ignored(1)),
    ("outfile-pattern", Ignored(1)),
    ("output", Ignored(1)),
    ("output-filename", Ignored(1)),
    ("personality", Ignored(1)),
    ("prefix", Ignored(1)),
    ("rank-by", Ignored(1)),
    ("rmk", Ignored(1)),
    ("stdin", Ignored(1)),
    ("thread-affinity", Ignored(1)),
    ("topolib", Ignored(1)),
    ("tune", Ignored(1)),
    ("mca", IgnoredPair),
    ("gmca", IgnoredPair),
    ("pmixmca", IgnoredPair),
    ("prtemca", IgnoredPair),
];

fn meaning(flag: &str) -> Option<Meaning> {
    let exact = HOROVODRUN.iter().find(|(known, _)| *known == flag);
    let name = flag.strip_prefix("--").or_else(|| flag.strip_prefix('-'));
    let named = || MPIRUN.iter().find(|(known, _)| Some(*known) == name);
    exact.or_else(named).map(|(_, meaning)| *meaning)
}

/// Whether the next word is the value of this flag of `command`.
fn takes_next(command: &Command, flag: &str) -> bool {
    let is_it = |arg: &&clap::Arg| match flag.strip_prefix("--") {
        Some(name) => {
            arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|a| a.contains(&name))
        }
        None => arg.get_short().is_some_and(|short| flag == format!("-{short}")),
    };
    let found = command.get_arguments().find(is_it);
    found.is_some_and(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set())
}

/// Translates the words of a command line into the flags of `command`. Also returns the ignored
/// flags. The first `skipped` words are the names of the command. The program starts after `--`, or
/// at the first word that is neither a flag nor the value of one.
pub fn translated(
    words: Vec<OsString>,
    skipped: usize,
    command: &Command,
) -> Result<(Vec<OsString>, Vec<String>)> {
    let mut words = words.into_iter();
    let mut line =
        Translation { out: words.by_ref().take(skipped).collect(), ..Default::default() };
    while let Some(word) = words.next() {
        let Some(text) = word.to_str().map(str::to_string) else {
            line.out.push(word);
            continue;
        };
        if text == "--" || !text.starts_with('-') || text == "-" {
            line.finish()?;
            line.out.push("--".into());
            line.out.extend((text != "--").then_some(word));
            line.out.extend(words);
            return Ok((line.out, line.ignored));
        }
        let (flag, mut given) = match text.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_string())),
            _ => (text.as_str(), None),
        };
        let mut value = || -> Result<String> {
            let next = given.take().or_else(|| words.next()?.into_string().ok());
            next.ok_or_else(|| invalid(format!("{flag} needs a value")))
        };
        match meaning(flag) {
            Some(meaning) => line.take(flag, meaning, &mut value)?,
            None => {
                let is_alone = given.is_some() || !takes_next(command, flag);
                line.out.push(word);
                line.out.extend((!is_alone).then(|| words.next()).flatten());
            }
        }
    }
    line.finish()?;
    Ok((line.out, line.ignored))
}

/// A command line that is being translated.
#[derive(Default)]
struct Translation {
    out: Vec<OsString>,
    ignored: Vec<String>,
    np: Option<String>,
    /// The hosts, as the value of `-H`.
    hosts: Vec<String>,
    per_host: Option<usize>,
    ssh: Option<String>,
}

impl Translation {
    fn take(
        &mut self,
        flag: &str,
        meaning: Meaning,
        value: &mut dyn FnMut() -> Result<String>,
    ) -> Result<()> {
        match meaning {
            Renamed("-H") => self.hosts.push(value()?),
            Renamed("--np") => self.np = Some(value()?),
            Renamed(name) => self.out.extend([name.into(), value()?.into()]),
            Variable(name) => self.set(name, &value()?),
            Mebibytes(name) => {
                let text = value()?;
                let size: f64 =
                    text.parse().map_err(|_| invalid(format!("{flag} {text}: not a number")))?;
                self.set(name, &format!("{:.0}", size * 1024.0 * 1024.0));
            }
            Set(name) => self.set(name, "1"),
            NameAndValue => {
                let name = value()?;
                self.set(&name, &value()?);
            }
            Names => {
                let names = value()?;
                let names = names.split(',').filter(|name| !name.is_empty());
                self.out.extend(names.flat_map(|name| ["-x".into(), name.into()]));
            }
            HostFile => {
                let path = value()?;
                let lines = std::fs::read_to_string(&path)
                    .map_err(|e| invalid(format!("cannot read the host file {path}: {e}")))?;
                let list = host_list(&lines);
                if list.is_empty() {
                    return Err(invalid(format!("the host file {path} names no host")));
                }
                self.hosts.push(list);
            }
            PerHost => {
                let text = value()?;
                let count = text.parse().ok().filter(|count| *count > 0);
                let wrong = || invalid(format!("{flag} {text}: not a number of processes"));
                self.per_host = Some(count.ok_or_else(wrong)?);
            }
            OnePerHost => self.per_host = Some(1),
            Ssh(option) => {
                let value = value()?;
                let command = self.ssh.get_or_insert_with(|| "ssh -tt -o BatchMode=yes".into());
                *command += &format!(" {option} {value}");
            }
            Ignored(values) => {
                (0..values).try_for_each(|_| value().map(|_| ()))?;
                self.ignored.push(flag.to_string());
            }
            IgnoredPair => {
                // The first value names the setting, so the message shows it.
                self.ignored.push(format!("{flag} {}", value()?));
                value()?;
            }
            Refused(advice) => {
                return Err(invalid(format!("{flag} has no meaning here: {advice}")));
            }
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &str) {
        self.out.extend(["-x".into(), format!("{name}={value}").into()]);
    }

    /// Adds the flags that depend on several others.
    fn finish(&mut self) -> Result<()> {
        if let Some(ssh) = self.ssh.take() {
            self.out.extend(["--rsh".into(), ssh.into()]);
        }
        let mut hosts = std::mem::take(&mut self.hosts).join(",");
        if let Some(slots) = self.per_host {
            if hosts.is_empty() {
                self.np.get_or_insert_with(|| slots.to_string());
            } else {
                let all = hosts::parse(&hosts)?;
                let all = all.into_iter().map(|host| Host { slots, ..host }.to_string());
                hosts = all.collect::<Vec<_>>().join(",");
            }
        }
        if let Some(np) = self.np.take() {
            self.out.extend(["--np".into(), np.into()]);
        }
        if !hosts.is_empty() {
            self.out.extend(["-H".into(), hosts.into()]);
        }
        Ok(())
    }
}

/// The lines of a host file as the value of `-H`: `HOST slots=N` as for Open MPI and horovodrun, or
/// `HOST:N` as for MPICH. Ignores other words of a line.
fn host_list(lines: &str) -> String {
    let host = |line: &str| {
        let line = line.split('#').next()?.trim().replace(" = ", "=");
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
        let slots = rest.split_whitespace().find_map(|w| w.strip_prefix("slots="));
        match slots {
            _ if name.is_empty() => None,
            // An address with colons needs brackets before the slots.
            _ if name.parse::<std::net::Ipv6Addr>().is_ok() => {
                Some(format!("[{name}]:{}", slots.unwrap_or("1")))
            }
            Some(slots) => Some(format!("{name}:{slots}")),
            None => Some(name.to_string()),
        }
    };
    lines.lines().filter_map(host).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn try_of(words: &[&str]) -> Result<(String, Vec<String>)> {
        let cli = crate::Cli::command();
        let run = cli.find_subcommand("run").unwrap();
        let words = ["ferroflow", "run"].iter().chain(words).map(OsString::from).collect();
        let (out, ignored) = translated(words, 2, run)?;
        let out: Vec<String> = out[2..].iter().map(|w| w.to_str().unwrap().into()).collect();
        Ok((out.join(" "), ignored))
    }

    fn of(line: &str) -> (String, Vec<String>) {
        try_of(&line.split_whitespace().collect::<Vec<_>>()).unwrap()
    }

    fn refusal(line: &str) -> String {
        let found = try_of(&line.split_whitespace().collect::<Vec<_>>());
        found.unwrap_err().message().to_string()
    }

    #[test]
    fn flags_of_horovodrun_become_those_of_this_command() {
        let (out, ignored) = of("--num-proc 4 --fusion-threshold-mb=2 --cycle-time-ms 5 --gloo \
             --network-interface eth0 -- python --gloo");
        let want =
            "-x HOROVOD_FUSION_THRESHOLD=2097152 -x HOROVOD_CYCLE_TIME=5 --np 4 -- python --gloo";
        assert_eq!(out, want);
        assert_eq!(ignored, ["--gloo", "--network-interface"]);
    }

    #[test]
    fn flags_of_mpirun_are_understood_or_named() {
        let given = "-np 4 --host a:2,b:2 -bind-to none --map-by slot -x PATH -mca pml ob1 \
                     --mca btl ^openib --allow-run-as-root -- python --bind-to x";
        let (out, ignored) = of(given);
        assert_eq!(out, "-x PATH --np 4 -H a:2,b:2 -- python --bind-to x");
        let named = ["-bind-to", "--map-by", "-mca pml", "--mca btl", "--allow-run-as-root"];
        assert_eq!(ignored, named);
        assert!(refusal("-mca pml").contains("-mca needs a value"));
        assert!(refusal("-np 2 --wdir /x p").contains("change to that folder"));
        // MPICH's.
        let given = "-genv A 1 -envlist B,C -ppn 2 -hosts a,b -launcher ssh -np 4 -l p";
        let (out, ignored) = of(given);
        assert_eq!(out, "-x A=1 -x B -x C --np 4 -H a:2,b:2 -- p");
        assert_eq!(ignored, ["-launcher", "-l"]);
    }

    #[test]
    fn a_number_of_processes_for_each_host_is_its_number_of_slots() {
        assert_eq!(of("-N 3 -H a,me@b:1 -- p").0, "-H a:3,me@b:3 -- p");
        assert_eq!(of("--npernode 2 p").0, "--np 2 -- p");
        assert_eq!(of("--pernode --host a,b p").0, "-H a:1,b:1 -- p");
        assert!(refusal("-N 0 p").contains("-N 0: not a number of processes"));
    }

    #[test]
    fn own_flags_stay_and_a_missing_value_is_an_error() {
        assert_eq!(of("-np 2 -H a:1,b:1 -- x"), ("--np 2 -H a:1,b:1 -- x".into(), vec![]));
        let ssh = of("-p 2222 -i key -- ssh -p 1").0;
        assert_eq!(ssh, "--rsh ssh -tt -o BatchMode=yes -p 2222 -i key -- ssh -p 1");
        assert!(refusal("--cycle-time-ms").contains("--cycle-time-ms needs a value"));
    }

    #[test]
    fn the_program_needs_no_dashes_before_it() {
        assert_eq!(of("-np 2 python train.py --verbose").0, "--np 2 -- python train.py --verbose");
        let own = "--ps 2 --workers=3 --dashboard --rsh sh -x A=1 --chief --min-np 1 p -n 4";
        let (out, ignored) = of(own);
        assert_eq!(out, own.replace("p -n", "-- p -n"));
        assert!(ignored.is_empty());
        assert_eq!(of("-n4 -Ha:4 p").0, "-n4 -Ha:4 -- p");
        assert_eq!(of("--nonsense 4 p").0, "--nonsense -- 4 p", "the parser names the flag");
    }

    #[test]
    fn a_host_file_becomes_a_list_of_hosts() {
        let lines =
            "a slots=2 max_slots=4\n# none\n\nb\nc slots = 1 # last\nd:3\nfd00::7 slots=2\n";
        assert_eq!(host_list(lines), "a:2,b,c:1,d:3,[fd00::7]:2");
    }
}
