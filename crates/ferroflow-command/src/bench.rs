//! `ferroflow bench`: measures this cluster.

mod allreduce;
mod explain;
mod layers;

use crate::launch::{Guard, Process, RemoteShell, launch};
use crate::run::ports::free_ports;
use ferroflow::collective::{Membership, TransportChoice};
use ferroflow::{Code, Error, Result};
use ferroflow_identity::JobToken;

/// Measure this cluster
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Allreduce(allreduce::Allreduce),
    Layers(layers::Layers),
}

/// Options of all benchmarks.
#[derive(clap::Args)]
struct Ranks {
    /// Ranks to start
    #[arg(short = 'n', long, value_name = "N", default_value_t = 2)]
    n: usize,
    /// Links: auto, tcp, shared or ucx [default: $FERROFLOW_TRANSPORT, or auto]
    #[arg(long, value_name = "LINKS")]
    transport: Option<String>,
    /// Print a line of JSON for each figure
    #[arg(long)]
    json: bool,
}

impl Ranks {
    /// The links of --transport, or those that the launcher has chosen.
    fn links(&self, of_job: TransportChoice) -> Result<TransportChoice> {
        self.transport.as_deref().map_or(Ok(of_job), TransportChoice::from_name)
    }

    /// The rank of this process, if a launcher has started it, with the links of --transport.
    fn place(&self) -> Result<Option<Membership>> {
        // Checked before ranks start, so that an error is printed once.
        self.links(TransportChoice::default())?;
        let Some(mut member) = Membership::from_env()? else { return Ok(None) };
        member.transport = self.links(member.transport)?;
        Ok(Some(member))
    }
}

pub fn run(args: Args) -> Result<()> {
    match args.what {
        What::Allreduce(args) => allreduce::run(&args),
        What::Layers(args) => layers::run(&args),
    }
}

/// The participants, for the headline.
fn among(n: usize, links: &str) -> String {
    match n {
        1 => "of one rank alone".into(),
        n => format!("among {n} ranks over {links}"),
    }
}

/// Starts this command once for each rank.
fn start(n: usize) -> Result<()> {
    if n == 0 {
        return Err(Error::new(Code::InvalidArgument, "-n must be at least 1"));
    }
    let problem = |e: std::io::Error| {
        Error::new(Code::Internal, format!("cannot find the path of this program: {e}"))
    };
    let program = crate::own_program().map_err(problem)?.display().to_string();
    let (address, token) = (format!("127.0.0.1:{}", free_ports(1)?[0]), JobToken::random()?);
    let process = |rank: usize| Process {
        // Only rank 0 prints results.
        name: format!("rank {rank}"),
        label: if rank == 0 { String::new() } else { rank.to_string() },
        program: program.clone(),
        // The command of the Python package has words of the interpreter before these.
        args: std::env::args().skip_while(|word| word != "bench").collect(),
        env: vec![
            ("FERROFLOW_RANK".into(), rank.to_string()),
            ("FERROFLOW_SIZE".into(), n.to_string()),
            ("FERROFLOW_ADDRESS".into(), address.clone()),
            ("FERROFLOW_TOKEN".into(), token.reveal().to_string()),
        ],
        ..Process::default()
    };
    match launch((0..n).map(process).collect(), &RemoteShell::default(), Guard::start())? {
        0 => Ok(()),
        code => std::process::exit(code.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        ranks: Ranks,
    }

    #[test]
    fn the_flag_overrides_the_links_of_the_job() {
        let links = |words: &[&str]| {
            let line = Line::try_parse_from([&["bench"], words].concat()).unwrap();
            line.ranks.links(TransportChoice::Tcp)
        };
        assert_eq!(links(&[]).unwrap(), TransportChoice::Tcp);
        assert_eq!(links(&["--transport", "ucx"]).unwrap(), TransportChoice::Ucx);
        assert!(links(&["--transport", "pigeon"]).is_err());
    }
}
