//! Writes `docs/src/reference/faults.md` from the tested cells.

use super::cell::{Cell, Fault, Phase, Role};
use ferroflow::Code;
use std::path::Path;

const INTRODUCTION: &str = "\
# What happens to a call when a task fails?

The table says how a client's call ends when a task that it needs fails:

- *killed*: SIGKILL;
- *stopped*: SIGSTOP, or a process that hangs;
- *cut off*: its host cannot be reached.

`crates/ferroflow-cli/tests/common/faults/` tries every cell with real processes and writes this page:
`UPDATE_DOCS=1 cargo test -p ferroflow-cli --test cli the_table`. In every cell:

- the call ends; a call that does not end fails the test;
- its error names the task, or its address;
- a session that does not need the task continues;
- a new session works once the task is back (restarted, continued, reachable).

A task that is gone is noticed when its connections break. A silent task that others wait for is probed,
and given up within three seconds. Opening a session waits for missing tasks, up to `--session-timeout` and the
client's own timeout, since jobs start their tasks minutes apart.

";

/// The host of a task is replaced, like a pod. `hosts/network.rs` tests it.
pub const NEW_ADDRESS: (&str, &str) = (
    "a task restarts at another address, and its name leads there",
    "steps of old sessions: `Unavailable` within 3 s, naming the task; a new session looks the name up again and works",
);

/// `hosts/network.rs` tests it.
pub const SLOW_LINK: (&str, &str) = (
    "a link that needs longer for a value than a silent task is given",
    "the step takes as long as its values need; no task is given up",
);

pub fn check() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/faults.md");
    let text = text();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/src/reference/faults.md is stale: UPDATE_DOCS=1 cargo test -p ferroflow-cli --test cli the_table"
    );
}

fn text() -> String {
    let mut text = INTRODUCTION.to_string();
    text += "| task | while | killed | stopped | cut off |\n|---|---|---|---|---|\n";
    for role in Role::ALL {
        for phase in Phase::ALL {
            let cells = Fault::OF_ONE.map(|fault| outcome(Cell { role, phase, fault }));
            text += &format!(
                "| {} | {} | {} |\n",
                role_text(role),
                phase_text(phase),
                cells.join(" | ")
            );
        }
    }
    text += &format!(
        "\nA parameter server and a worker that cannot reach each other, while the master reaches both and {}: {}.\n",
        phase_text(Cell::APART.phase),
        outcome(Cell::APART)
    );
    text += "\n| network | outcome |\n|---|---|\n";
    for (what, outcome) in [NEW_ADDRESS, SLOW_LINK] {
        text += &format!("| {what} | {outcome} |\n");
    }
    text += "\n[What happens to a server under pressure?](pressure.md) has the rows for a FIFO, memory, descriptors,\n\
             silent connections, hostile peers and a full disk.\n";
    text + "\nWhile a checkpoint is being written, the one before it stays the latest and complete.\n"
}

fn outcome(cell: Cell) -> String {
    let who = match (cell.fault, cell.role) {
        (Fault::FromEachOther, _) => "both",
        (_, Role::Master) => "its address",
        _ => "the task",
    };
    let code = match cell.expected() {
        Code::DeadlineExceeded => "`DeadlineExceeded` after the timeout",
        Code::Unavailable if cell.fault == Fault::Killed => "`Unavailable` at once",
        Code::Unavailable => "`Unavailable` within 3 s",
        other => panic!("no words for {other:?}"),
    };
    format!("{code}, naming {who}")
}

fn role_text(role: Role) -> &'static str {
    match role {
        Role::Ps => "parameter server",
        Role::Master => "master (the client talks to it)",
        Role::Worker => "worker",
    }
}

fn phase_text(phase: Phase) -> &'static str {
    match phase {
        Phase::Creation => "the session is opened",
        Phase::Registration => "a step's graph is registered",
        Phase::Step => "a step runs",
        Phase::Transfer => "values are transferred",
        Phase::Checkpoint => "a checkpoint is made",
    }
}
