//! The `ferroflow` command, for its program and for the Python package, which carries it too.
#![forbid(unsafe_code)]

mod bench;
#[cfg(test)]
mod command_doc;
mod cores;
mod credentials;
mod dashboard;
mod devices;
mod doctor;
mod driver;
mod exec;
pub mod gpus;
mod http_flags;
mod inspect;
mod k8s;
mod launch;
mod limit_flags;
pub mod logging;
mod place;
mod plan;
mod proxy;
mod run;
mod say;
mod serve;
mod server;
mod shell;
mod top;
mod train;
mod units;

use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Distributed TensorFlow, re-founded in Rust.
#[derive(Parser)]
#[command(name = "ferroflow", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Devices(devices::Args),
    Doctor(Box<doctor::Args>),
    Inspect(inspect::Args),
    Server(Box<server::Args>),
    Serve(Box<serve::Args>),
    Run(run::Args),
    Driver(driver::Args),
    Exec(exec::Args),
    Certs(credentials::Args),
    K8s(k8s::Args),
    Proxy(proxy::Args),
    Plan(plan::Args),
    Place(place::Args),
    Bench(bench::Args),
    Train(train::Args),
    Dashboard(dashboard::Args),
    Top(top::Args),
    Completions(shell::Completions),
    Man(shell::Man),
    /// End the processes of a job whose launcher was killed
    #[command(hide = true)]
    Guard(launch::guard::Args),
    /// Print free ports; `run -H` calls this on other hosts
    #[command(hide = true)]
    Ports(run::ports::Args),
    #[command(hide = true)]
    ReduceServer(run::summing::Args),
}

/// The path of the program that starts this command again.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The path of this program, for the processes that it starts.
fn own_program() -> std::io::Result<PathBuf> {
    match PROGRAM.get() {
        Some(program) => Ok(program.clone()),
        None => std::env::current_exe(),
    }
}

/// The command line, with `-np` (the spelling of other launchers) replaced by `--np`.
fn normalized(words: Vec<OsString>) -> Vec<OsString> {
    let mut ours = true;
    let one = |word: OsString| {
        // Words after `--` belong to the user's program.
        ours &= word != "--";
        if ours && word == "-np" { "--np".into() } else { word }
    };
    words.into_iter().map(one).collect()
}

fn parsed(words: Vec<OsString>) -> Cli {
    let words = normalized(words);
    // The commands that accept the flags of other launchers.
    let launchers: [&[&str]; 2] = [&["run"], &["k8s", "render"]];
    let is_at = |names: &&&[&str]| names.iter().zip(words.iter().skip(1)).all(|(a, b)| *a == b);
    let called = launchers.iter().filter(|names| words.len() > names.len()).find(is_at);
    match called.copied() {
        Some(names) => Cli::try_parse_from(without_horovod(words, names)),
        None => Cli::try_parse_from(words),
    }
    .unwrap_or_else(|e| refuse(&e))
}

/// Ends the process with help, or with what is wrong with the command line.
fn refuse(error: &clap::Error) -> ! {
    if error.kind() != clap::error::ErrorKind::ValueValidation {
        error.exit();
    }
    let text = error.render();
    let is_terminal = std::io::stderr().is_terminal();
    let text = if is_terminal { text.ansi().to_string() } else { text.to_string() };
    eprint!("{}", with_plain_numbers(text));
    std::process::exit(error.exit_code())
}

/// Says what a number must be. The standard library's errors say what its parser did.
fn with_plain_numbers(text: String) -> String {
    let plain = [
        ("invalid digit found in string", "expected a whole number"),
        ("cannot parse integer from empty string", "expected a whole number"),
        ("invalid float literal", "expected a number"),
        ("cannot parse float from empty string", "expected a number"),
        ("number too large to fit in target type", "the number is too large"),
    ];
    plain.iter().fold(text, |text, (from, to)| text.replace(from, to))
}

/// Replaces the flags of horovodrun and mpirun, and names the flags without an effect here.
fn without_horovod(words: Vec<OsString>, names: &[&str]) -> Vec<OsString> {
    let cli = Cli::command();
    let command = names.iter().fold(&cli, |at, name| at.find_subcommand(name).unwrap_or(at));
    let name = names.join(" ");
    match run::horovod::translated(words, 1 + names.len(), command) {
        Ok((words, ignored)) => {
            if !ignored.is_empty() {
                eprintln!("ferroflow {name}: ignored: {}", ignored.join(", "));
            }
            words
        }
        Err(e) => {
            eprintln!("ferroflow {name}: {}", e.message());
            std::process::exit(2)
        }
    }
}

/// Runs the command with these words, the first of which is its name, and returns the exit status.
/// `program` starts the command again, if that is not the program of this process.
pub fn main_from(words: Vec<OsString>, program: Option<PathBuf>) -> u8 {
    if let Some(program) = program {
        let _ = PROGRAM.set(program);
    }
    let verb = parsed(words).verb;
    // Servers always have a log.
    let is_quiet = matches!(verb, Verb::Run(_) | Verb::Train(_) | Verb::Bench(_) | Verb::Exec(_));
    let asked = if is_quiet { logging::log_if_asked() } else { Ok(()) };
    let result = asked.and_then(|()| call(verb));
    match result {
        Ok(()) => 0,
        Err(e) => {
            eprintln!("ferroflow: {}", e.message());
            1
        }
    }
}

fn call(verb: Verb) -> ferroflow::Result<()> {
    match verb {
        Verb::Devices(args) => devices::run(args),
        Verb::Doctor(args) => doctor::run(*args),
        Verb::Inspect(args) => inspect::run(args),
        Verb::Server(args) => server::run(*args),
        Verb::Serve(args) => serve::run(*args),
        Verb::Train(args) => train::run(args),
        Verb::Dashboard(args) => dashboard::run(args),
        Verb::Top(args) => top::run(args),
        Verb::Completions(args) => shell::completions(args),
        Verb::Man(args) => shell::man(args),
        Verb::Run(args) => run::run(args),
        Verb::Driver(args) => driver::run(args),
        Verb::Exec(args) => exec::run(args),
        Verb::Certs(args) => credentials::run(args),
        Verb::K8s(args) => k8s::run(args),
        Verb::Proxy(args) => proxy::run(args),
        Verb::ReduceServer(_) => run::summing::serve(),
        Verb::Plan(args) => plan::run(args),
        Verb::Place(args) => place::run(args),
        Verb::Bench(args) => bench::run(args),
        Verb::Ports(args) => run::ports::run(args),
        Verb::Guard(args) => launch::guard::run(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_is_refused_in_plain_words() {
        for (flag, text) in [("--steps", "a whole number"), ("--learning-rate", "a number")] {
            let error = Cli::try_parse_from(["ferroflow", "train", flag, "x"]).err();
            let text_of = |error: clap::Error| with_plain_numbers(error.render().to_string());
            let said = error.map(text_of).unwrap_or_default();
            assert!(said.contains(&format!("'x' for '{flag}")), "{said}");
            assert!(said.contains(&format!(": expected {text}\n")), "{said}");
        }
    }
}
