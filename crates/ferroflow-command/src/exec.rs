//! `ferroflow exec`: runs an unchanged TensorFlow 1.x program on Ferroflow.

use crate::run::{Client, single};
use ferroflow::{Code, Error, Result};

/// Run an unchanged TensorFlow 1.x program on Ferroflow
///
/// The program keeps `import tensorflow`. By default that import finds the package ferroflow. With
/// --client tensorflow the program keeps its TensorFlow; its sessions without a target, and its
/// tf.train.Server, are Ferroflow's.
///
/// The Ferroflow server for sessions without a target runs in the current folder: relative paths
/// mean the same in the program and in the server. Ops that Ferroflow does not run are listed
/// before the first step.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  ferroflow exec train.py --steps 100\n  \
    ferroflow exec --client tensorflow train.py\n  ferroflow exec -m package.train")]
pub struct Args {
    /// Library that builds graphs
    #[arg(long, value_enum, default_value_t = Client::Ferroflow)]
    client: Client,
    /// Python that runs the program
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: String,
    /// PROGRAM is the name of a module
    #[arg(short = 'm')]
    module: bool,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "PROGRAM"
    )]
    program: Vec<String>,
}

pub fn run(args: Args) -> Result<()> {
    if !args.module && !std::path::Path::new(&args.program[0]).is_file() {
        let text = format!("there is no program '{}'", args.program[0]);
        return Err(Error::new(Code::NotFound, text));
    }
    let mut words = vec![args.python];
    words.extend(args.module.then(|| "-m".to_string()));
    words.extend(args.program);
    match single::run(&words, args.client, &[])? {
        0 => Ok(()),
        code => std::process::exit(code.into()),
    }
}
