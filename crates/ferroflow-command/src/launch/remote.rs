//! Runs commands on other hosts through ssh or a replacement for it.

use super::Process;
use ferroflow::{Code, Error, Result};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The time limit for the answer of another host.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// The command that runs a line in a shell on another host.
#[derive(Clone, Debug)]
pub struct RemoteShell {
    words: Vec<String>,
}

impl Default for RemoteShell {
    fn default() -> RemoteShell {
        // With a terminal, the remote process ends with the connection.
        RemoteShell::new("ssh -tt -o BatchMode=yes")
    }
}

impl RemoteShell {
    /// Parses words separated by spaces. `{host}` is replaced by the host name, which is appended
    /// if `{host}` is missing. The line comes last.
    pub fn new(words: &str) -> RemoteShell {
        RemoteShell { words: words.split_whitespace().map(str::to_string).collect() }
    }

    /// The program's name, for messages.
    pub fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The command that runs `line` on `host`.
    pub fn command(&self, host: &str, line: &str) -> Command {
        let mut command = Command::new(self.program());
        let has_place = self.words.iter().any(|w| w.contains("{host}"));
        command.args(self.words.iter().skip(1).map(|w| w.replace("{host}", host)));
        if !has_place {
            command.arg(host);
        }
        command.arg(line);
        command
    }

    /// Runs `words` on `host` and returns their output.
    pub fn ask(&self, host: &str, words: &[&str]) -> Result<String> {
        let failed = |why: String| {
            let (program, asked) = (self.program(), words.join(" "));
            Error::new(Code::Unavailable, format!("{host}: {program} {asked:?}: {why}"))
        };
        let line: Vec<String> = words.iter().map(|w| quoted(w)).collect();
        let mut command = self.command(host, &line.join(" "));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|e| failed(format!("it cannot be started (see --rsh): {e}")))?;
        let until = Instant::now() + ANSWER_LIMIT;
        let status = loop {
            match child.try_wait().map_err(|e| failed(e.to_string()))? {
                Some(status) => break status,
                None if Instant::now() > until => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(failed(format!("no answer within {ANSWER_LIMIT:?}")));
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        // The output is a line or two, so it cannot fill the pipe.
        let mut said = String::new();
        if let Some(mut out) = child.stdout.take() {
            let _ = out.read_to_string(&mut said);
        }
        if status.success() {
            return Ok(said);
        }
        let mut why = String::new();
        if let Some(mut errors) = child.stderr.take() {
            let _ = errors.read_to_string(&mut why);
        }
        Err(failed(format!("{status}: {}{}", said.trim(), why.trim())))
    }
}

/// The variables that must not appear on a command line, which every user of a host can read.
const SECRETS: [&str; 2] = ["FERROFLOW_TOKEN", "FERROFLOW_CREDENTIALS"];

fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name)
}

/// The secret variables of the process. Their values are the first lines of its standard input.
pub fn secrets_of(process: &Process) -> Vec<(&str, &str)> {
    let last = |name: &&'static str| {
        let found = process.env.iter().rfind(|(n, _)| n == name);
        found.map(|(name, value)| (name.as_str(), value.as_str()))
    };
    SECRETS.iter().filter_map(last).collect()
}

/// The line that a remote shell runs: the same directory, environment and program. The login shell
/// may be any shell, so it only starts `sh`.
pub fn line_of(process: &Process) -> String {
    let here = std::env::current_dir().map(|d| d.display().to_string()).unwrap_or_default();
    let mut script = String::new();
    for (name, _) in secrets_of(process) {
        let trouble = "ferroflow run: the remote shell (--rsh) passes no input on, which brings the job token";
        script += &format!("IFS= read -r {name} || {{ echo {} >&2; exit 1; }}; ", quoted(trouble));
        script += &format!("export {name}; ");
    }
    script += &format!("cd {} && exec env", quoted(&here));
    for (name, value) in process.env.iter().filter(|(name, _)| !is_secret(name)) {
        script += &format!(" {name}={}", quoted(value));
    }
    script += &format!(" {}", quoted(&process.program));
    process.args.iter().for_each(|a| script += &format!(" {}", quoted(a)));
    script += " </dev/null";
    format!("exec sh -c {}", quoted(&script))
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<String> {
        let all = std::iter::once(command.get_program()).chain(command.get_args());
        all.map(|w| w.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_host_goes_where_the_command_wants_it() {
        let ssh = RemoteShell::default().command("h", "ls -l");
        assert_eq!(words(&ssh), ["ssh", "-tt", "-o", "BatchMode=yes", "h", "ls -l"]);
        let other = RemoteShell::new("ip netns exec {host} sh -c").command("h", "ls -l");
        assert_eq!(words(&other), ["ip", "netns", "exec", "h", "sh", "-c", "ls -l"]);
    }

    #[test]
    fn words_reach_another_hosts_shell_as_they_are_and_the_token_is_not_among_them() {
        use std::io::Write;
        let script = r#"echo "$1 $X $FERROFLOW_TOKEN"; cat"#;
        let process = Process {
            program: "sh".into(),
            args: ["-c", script, "sh", "a  'b' $X"].map(Into::into).to_vec(),
            env: vec![("X".into(), "it's".into()), (SECRETS[0].into(), "the secret".into())],
            ..Process::default()
        };
        let line = line_of(&process);
        assert!(!line.contains("the secret"), "{line}");
        let run = |input: &str| {
            let mut command = RemoteShell::new("env H={host} sh -c").command("far", &line);
            let command =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            let out = child.wait_with_output().unwrap();
            let text = [out.stdout, out.stderr].concat();
            (out.status.success(), String::from_utf8(text).unwrap())
        };
        let secret = secrets_of(&process)[0].1;
        let said = run(&format!("{secret}\nnot for the program\n"));
        assert_eq!(said, (true, "a  'b' $X it's the secret\n".to_string()));
        let (success, said) = run("");
        assert!(!success && said.contains("(--rsh) passes no input on"), "{said}");
    }

    #[test]
    fn a_host_that_cannot_be_asked_is_named() {
        let said = RemoteShell::new("env H={host} sh -c").ask("far", &["echo", "it's $H"]).unwrap();
        assert_eq!(said, "it's $H\n");
        let e = RemoteShell::new("false").ask("far", &["ls"]).unwrap_err();
        assert!(e.message().starts_with("far: false \"ls\""), "{e}");
        let e = RemoteShell::new("no-such-shell").ask("far", &["ls"]).unwrap_err();
        assert!(e.message().contains("--rsh"), "{e}");
    }
}
