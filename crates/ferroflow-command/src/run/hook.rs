//! The hook for the Python programs that the launcher starts: a folder at the front of PYTHONPATH.
//! Its `sitecustomize` redirects TensorFlow and fills in the flags of a task.

use ferroflow::graph::default_catalog;
use ferroflow::{Code, Error, Result};
use std::path::{Path, PathBuf};

const FILES: [(&str, &str); 3] = [
    ("sitecustomize.py", include_str!("hook/sitecustomize.py")),
    ("redirect.py", include_str!("../../../../python/ferroflow/_redirect.py")),
    ("task_flags.py", include_str!("../../../../python/ferroflow/_task_flags.py")),
];

/// Which library builds the graphs of a program that imports TensorFlow.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
pub enum Client {
    /// TensorFlow where it is installed, else the package ferroflow
    Auto,
    /// The package ferroflow
    Ferroflow,
    /// TensorFlow
    Tensorflow,
}

/// The folder. It is removed when this is dropped.
pub struct Hook(PathBuf);

impl Hook {
    pub fn write() -> Result<Hook> {
        let folder = std::env::temp_dir().join(format!("ferroflow-hook-{}", std::process::id()));
        let problem = |e: std::io::Error| {
            Error::new(Code::Unavailable, format!("cannot write {}: {e}", folder.display()))
        };
        let _ = std::fs::remove_dir_all(&folder);
        // A folder that exists already belongs to another process.
        std::fs::create_dir(&folder).map_err(problem)?;
        let hook = Hook(folder.clone());
        for (name, text) in FILES {
            std::fs::write(folder.join(name), text).map_err(problem)?;
        }
        let catalog = default_catalog();
        let ops = catalog.iter().filter(|op| op.cpu.is_some()).map(|op| op.name.as_str());
        let ops: Vec<&str> = ops.collect();
        std::fs::write(folder.join("ops.txt"), ops.join("\n")).map_err(problem)?;
        Ok(hook)
    }

    /// The variables of a program. `client` is `None` for a program that keeps its sessions.
    pub fn env(&self, client: Option<Client>) -> Result<Vec<(String, String)>> {
        let text = |path: &Path| path.display().to_string();
        let mut folders = vec![self.0.clone()];
        if let Some(given) = std::env::var_os("PYTHONPATH") {
            folders.extend(std::env::split_paths(&given));
        }
        let path = std::env::join_paths(folders)
            .map_err(|e| Error::new(Code::InvalidArgument, format!("PYTHONPATH: {e}")))?;
        let mut env = vec![
            ("PYTHONPATH".to_string(), path.to_string_lossy().into_owned()),
            ("FERROFLOW_OPS".to_string(), text(&self.0.join("ops.txt"))),
        ];
        if let Some(client) = client {
            let name = match client {
                Client::Auto => "auto",
                Client::Ferroflow => "ferroflow",
                Client::Tensorflow => "tensorflow",
            };
            env.push(("FERROFLOW_CLIENT".to_string(), name.to_string()));
        }
        Ok(env)
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
