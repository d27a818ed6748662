//! `ferroflow completions` and `ferroflow man`: completions for shells, and man pages.

use crate::Cli;
use clap::CommandFactory;
use ferroflow::{Code, Error, Result};
use std::path::PathBuf;

/// Print completions for a shell
///
/// Write them to the file from which the shell reads them, and start a new shell.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ferroflow completions bash > ~/.local/share/bash-completion/completions/ferroflow\n  \
    ferroflow completions fish > ~/.config/fish/completions/ferroflow.fish\n  \
    ferroflow completions zsh > ~/.zfunc/_ferroflow     # ~/.zshrc: fpath+=~/.zfunc; autoload -U compinit; compinit")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Write the man pages of the command and its verbs
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ferroflow man ~/.local/share/man/man1")]
pub struct Man {
    /// Folder of the pages, which is made if it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn completions(args: Completions) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ferroflow", &mut text);
    use std::io::Write;
    // Ignore the error: a closed pipe (`| head`) is no failure.
    let _ = std::io::stdout().write_all(&text);
    Ok(())
}

pub fn man(args: Man) -> Result<()> {
    let failed = |e: std::io::Error| {
        Error::new(Code::Internal, format!("cannot write to {}: {e}", args.folder.display()))
    };
    std::fs::create_dir_all(&args.folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.folder).map_err(failed)
}
