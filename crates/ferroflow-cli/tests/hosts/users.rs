//! Other users of this host.

use crate::common::{Lines, Running, ferroflow, free_addresses};
use ferroflow_testing::needs::as_another_user;
use std::process::Stdio;

/// Sends a request that every server answers, and prints how many bytes came back.
fn ask(address: &str) -> String {
    let (host, port) = address.split_once(':').unwrap();
    let script = format!(
        "trap '' PIPE; exec 3<>/dev/tcp/{host}/{port} || exit 0; \
         printf 'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\
         \\x00\\x00\\x00\\x04\\x00\\x00\\x00\\x00\\x00' >&3; head -c 9 <&3 | wc -c"
    );
    let out = as_another_user(&script).output().unwrap();
    String::from_utf8_lossy(&out.stdout).trim().to_string()
}

fn server(words: &[&str]) -> (Running, String) {
    let address = free_addresses("127.0.0.1", 1).remove(0);
    let spec = format!("worker={address}");
    let mut command = ferroflow(&["server", "--cluster", &spec, "--job", "worker", "--task", "0"]);
    let child = command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut server = Running(child);
    Lines::of(server.0.stdout.take().unwrap()).wait_for("ready grpc://");
    (server, address)
}

pub fn another_user_of_this_host_is_not_let_in() {
    let (_server, address) = server(&[]);
    assert_eq!(ask(&address), "0", "another user got an answer");
    let (_open, address) = server(&["--any-local-user"]);
    assert_eq!(ask(&address), "9", "all users are let in on request");
}
