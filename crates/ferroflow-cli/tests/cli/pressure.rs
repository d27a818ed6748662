//! Servers under pressure: files that block, memory and descriptors that run out, silent and
//! hostile connections, a full disk. Each has one outcome, which the test checks and writes to the
//! book.

use crate::common::{FOREVER, Lines, PROGRAM, Running, folder, free_addresses, own_loopback};
use ferroflow::graph::{Attrs, GraphDef, GraphDefSession, NodeDef};
use ferroflow::{Code, DType, Error, Tensor};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A server of one task, started through a shell after `before`.
struct Server {
    process: Running,
    address: String,
    _errors: Lines,
}

impl Server {
    fn start(before: &str, flags: &str) -> Server {
        Server::start_by(&["sh"], before, flags)
    }

    fn start_by(shell: &[&str], before: &str, flags: &str) -> Server {
        let address = free_addresses(&own_loopback(), 1).remove(0);
        let server = format!("server --cluster local={address} --job local --task 0 {flags}");
        let script = format!("{before} exec {PROGRAM} {server}");
        let mut command = Command::new(shell[0]);
        command
            .args(&shell[1..])
            .args(["-c", &script])
            .env_remove("TF_CONFIG")
            .env_remove("FERROFLOW_BIND");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut process = Running(child);
        let out = Lines::of(process.0.stdout.take().unwrap());
        let errors = Lines::of(process.0.stderr.take().unwrap());
        out.wait_for("ready grpc://");
        Server { process, address, _errors: errors }
    }

    fn session(&self, nodes: Vec<NodeDef>) -> GraphDefSession {
        let graph = GraphDef { nodes, ..GraphDef::default() };
        GraphDefSession::connect(&format!("grpc://{}", self.address), &graph).unwrap()
    }

    fn fetch(&self, nodes: Vec<NodeDef>) -> Result<Tensor, Error> {
        Ok(self.session(nodes).run(&[], &["x:0"])?.remove(0))
    }

    /// Checks that another session works.
    fn works(&self) {
        let sum = node("x", "AddV2", &["a", "a"], of("T", DType::Float));
        let got = self.fetch(vec![constant("a", Tensor::scalar(2f32)), sum]).unwrap();
        assert_eq!(got, Tensor::scalar(4f32));
    }

    /// Bytes of physical memory.
    fn memory(&self) -> usize {
        let path = format!("/proc/{}/statm", self.process.0.id());
        let pages = std::fs::read_to_string(path).unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }
}

fn node(name: &str, op: &str, inputs: &[&str], attrs: Attrs) -> NodeDef {
    let inputs = inputs.iter().map(|i| i.to_string()).collect();
    NodeDef { name: name.into(), op: op.into(), inputs, attrs, ..NodeDef::default() }
}

fn of(name: &str, dtype: DType) -> Attrs {
    Attrs::new().with(name, dtype)
}

fn constant(name: &str, value: Tensor) -> NodeDef {
    node(name, "Const", &[], of("dtype", value.dtype()).with("value", value))
}

fn text(name: &str, value: &str) -> NodeDef {
    constant(name, Tensor::string(value.to_string()))
}

/// `bytes` bytes of initialized floats.
fn large(bytes: i64) -> Vec<NodeDef> {
    let dims = constant("dims", Tensor::vector(&[bytes / 4]));
    let fill = of("T", DType::Float).with("index_type", DType::Int64);
    let sum = of("T", DType::Float).with("Tidx", DType::Int32);
    vec![
        dims,
        constant("one", Tensor::scalar(1f32)),
        node("f", "Fill", &["dims", "one"], fill),
        constant("axis", Tensor::vector(&[0i32])),
        node("x", "Sum", &["f", "axis"], sum),
    ]
}

fn a_fifo() -> &'static str {
    let dir = folder("fifo");
    let path = dir.join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut server = Server::start("", "--stop-timeout 2");
    let name = path.display().to_string();
    let reads =
        || server.session(vec![text("n", &name), node("x", "ReadFile", &["n"], Attrs::new())]);
    let sessions: Vec<GraphDefSession> = (0..8).map(|_| reads()).collect();
    std::thread::scope(|scope| {
        for session in &sessions {
            scope.spawn(move || session.run(&[], &["x:0"]).unwrap_err());
        }
        for _ in 0..20 {
            server.works();
        }
        server.process.signal("TERM");
        let asked = Instant::now();
        server.process.end();
        assert!(asked.elapsed() < FOREVER / 2, "SIGTERM took {:?}", asked.elapsed());
    });
    std::fs::remove_dir_all(&dir).unwrap();
    "the steps that read it wait; other sessions go on; SIGTERM ends the server within `--stop-timeout`"
}

fn memory_runs_out() -> &'static str {
    let server = Server::start("", "--max-memory 512MiB --max-session-memory 256MiB");
    for (bytes, flag) in [(1i64 << 30, "--max-"), (300 << 20, "--max-session-memory")] {
        let e = server.fetch(large(bytes)).unwrap_err();
        assert_eq!(e.code(), Code::ResourceExhausted, "{e}");
        assert!(e.message().contains(flag), "{e}");
        server.works();
    }
    assert_eq!(server.fetch(large(64 << 20)).unwrap(), Tensor::scalar(16777216f32));
    "`ResourceExhausted` for the step, naming the limit; other sessions go on"
}

fn descriptors_run_out() -> &'static str {
    let server = Server::start("ulimit -n 128;", "");
    let silent: Vec<TcpStream> =
        (0..400).filter_map(|_| TcpStream::connect(&server.address).ok()).collect();
    assert!(silent.len() > 200, "{}", silent.len());
    server.works();
    drop(silent);
    server.works();
    "the oldest connections that have sent nothing are closed; clients go on"
}

fn ten_thousand_silent_connections() -> &'static str {
    let server = Server::start("", "");
    let before = server.memory();
    // This process needs as many descriptors.
    let own = std::process::id().to_string();
    let _ = Command::new("prlimit").args(["--nofile=12000", "--pid", &own]).status();
    let silent: Vec<TcpStream> =
        (0..10_000).filter_map(|_| TcpStream::connect(&server.address).ok()).collect();
    assert!(silent.len() > 5000, "only {} connections: raise ulimit -n", silent.len());
    server.works();
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 200 << 20, "{grown} bytes for silent connections");
    "the oldest ones are closed; clients go on; memory stays flat"
}

fn hostile_bytes() -> &'static str {
    let server = Server::start("", "");
    let mut seed = 7u64;
    for round in 0..200 {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let bytes: Vec<u8> = (0..round * 10)
            .map(|_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 56) as u8
            })
            .collect();
        let starts: [&[u8]; 4] =
            [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"FERROFLW", b"GET / HTTP/1.1\r\n\r\n", b""];
        let _ = stream.write_all(starts[round % 4]);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        // The server closes the connection, with or without an answer.
        let _ = stream.set_read_timeout(Some(FOREVER));
        let _ = stream.read_to_end(&mut Vec::new());
    }
    server.works();
    "the connection ends; others go on"
}

fn the_disk_is_full() -> &'static str {
    let dir = folder("full");
    let unshare = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status();
    let server = match unshare.is_ok_and(|status| status.success()) {
        // A disk of one megabyte.
        true => {
            let mount = format!("mount -t tmpfs -o size=1m tmpfs {} &&", dir.display());
            Server::start_by(&["unshare", "-rm", "sh"], &mount, "")
        }
        // Files of one megabyte, which fail in the same way.
        false => Server::start("trap '' XFSZ; ulimit -f 2000;", ""),
    };
    let save = |floats: usize| {
        let target = node(
            "x",
            "SaveV2",
            &["prefix", "names", "slices", "value"],
            Attrs::new().with("dtypes", vec![DType::Float]),
        );
        let texts = |name: &str, text: &'static str| {
            constant(name, Tensor::from_strings([1], vec![text.into()]).unwrap())
        };
        let prefix = text("prefix", &Path::new(&dir).join("model").display().to_string());
        let value = constant("value", Tensor::vector(&vec![1f32; floats]));
        let session =
            server.session(vec![prefix, texts("names", "w"), texts("slices", ""), value, target]);
        session.run_with(&[], &[], &["x"], None).map(|_| ())
    };
    save(1000).unwrap();
    let e = save(1 << 20).unwrap_err();
    assert_eq!(e.code(), Code::ResourceExhausted, "{e}");
    assert!(e.message().contains("model.data-00000-of"), "{e}");
    server.works();
    // The checkpoint before is whole.
    let restore = node(
        "x",
        "RestoreV2",
        &["prefix", "names", "slices"],
        Attrs::new().with("dtypes", vec![DType::Float]),
    );
    let texts = |name: &str, text: &'static str| {
        constant(name, Tensor::from_strings([1], vec![text.into()]).unwrap())
    };
    let prefix = text("prefix", &Path::new(&dir).join("model").display().to_string());
    let restored = server.fetch(vec![prefix, texts("names", "w"), texts("slices", ""), restore]);
    assert_eq!(restored.unwrap().elements(), 1000);
    drop(server);
    let _ = std::fs::remove_dir_all(&dir);
    "`ResourceExhausted` for the save, naming the file; the checkpoint before stays; training goes on"
}

const PAGE: &str = "docs/src/reference/pressure.md";

const INTRODUCTION: &str = "\
# What happens to a server under pressure?

`crates/ferroflow-cli/tests/cli/pressure.rs` tries every row with a real server and writes this page:
`UPDATE_DOCS=1 cargo test -p ferroflow-cli --test cli the_page_of_pressure`. In every row a session of another client works
while the pressure lasts.

| pressure | outcome |
|---|---|
";

#[test]
fn the_page_of_pressure_says_what_happens() {
    let rows = [
        ("a step reads a FIFO, or a file of a dead mount", a_fifo()),
        ("a step needs more memory than its session or the server may use", memory_runs_out()),
        ("more connections than descriptors", descriptors_run_out()),
        ("10,000 connections that send nothing", ten_thousand_silent_connections()),
        ("a peer that sends bytes of no protocol, or malformed ones", hostile_bytes()),
        ("the disk is full when a checkpoint is saved", the_disk_is_full()),
    ];
    let mut page = INTRODUCTION.to_string();
    for (pressure, outcome) in rows {
        page += &format!("| {pressure} | {outcome} |\n");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "{PAGE} is stale; run this test with UPDATE_DOCS=1");
}
