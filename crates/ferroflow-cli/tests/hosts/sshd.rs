//! An ssh server on the loopback interface, with keys and a configuration of its own.

use crate::common::{FOREVER, Running, folder, free_addresses};
use ferroflow_testing::needs::SSHD_PATH;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs until it is dropped.
pub struct Sshd {
    port: String,
    folder: PathBuf,
    _server: Running,
}

impl Sshd {
    pub fn start() -> Sshd {
        let folder = folder("sshd");
        let [host_key, user_key] = ["host", "user"].map(|name| folder.join(name));
        make_key(&host_key);
        make_key(&user_key);
        let address = free_addresses("127.0.0.1", 1).remove(0);
        let (_, port) = address.split_once(':').unwrap();
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}.pub\n\
             PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n",
            host_key.display(),
            user_key.display()
        );
        let file = folder.join("config");
        std::fs::write(&file, config).unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let mut server = Command::new(SSHD_PATH);
        server.args(["-D", "-e", "-f"]).arg(&file).stdin(Stdio::null()).stderr(log);
        let mut server = Running(server.spawn().unwrap());
        let until = Instant::now() + FOREVER;
        while TcpStream::connect(&address).is_err() {
            let log = || std::fs::read_to_string(folder.join("log")).unwrap();
            assert!(server.0.try_wait().unwrap().is_none(), "sshd has ended: {}", log());
            assert!(Instant::now() < until, "sshd does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
        Sshd { port: port.into(), folder, _server: server }
    }

    /// `--rsh` for a job whose hosts all are this server, under any name.
    pub fn remote_shell(&self) -> String {
        format!(
            "ssh -tt -F none -o BatchMode=yes -o LogLevel=ERROR -o HostName=127.0.0.1 -p {} -i {} \
             -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
            self.port,
            self.folder.join("user").display()
        )
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn make_key(path: &Path) {
    let mut make = Command::new("ssh-keygen");
    make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).stdin(Stdio::null());
    assert!(make.status().unwrap().success(), "ssh-keygen");
}
