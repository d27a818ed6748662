//! A client that runs steps over all tasks repeatedly and checks how each call ends.

use super::network::{self, CHIEF};
use ferroflow_cluster::{ConnectOptions, InProcessMaster, RemoteSession};
use ferroflow_core::{Code, DType, Error, PartialShape, Result, Tensor};
use ferroflow_graph::GraphDef;
use ferroflow_testing::graph;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A longer call counts as a hang. Opening takes longest: two seconds for missing tasks, three for
/// one that stops answering then, and two to close the session.
const LIMIT: Duration = Duration::from_secs(10);
/// Elements of a tensor large enough for the connection for large values.
const LARGE: usize = 80_000;
/// This many successful steps in a row show that the cluster has recovered.
const ENOUGH: usize = 20;

/// What the client has seen so far.
#[derive(Clone, Default)]
pub struct Seen(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    answers: usize,
    errors: usize,
    first_error: Option<(Error, Duration)>,
    /// No more failures will be injected.
    is_well: bool,
}

impl Seen {
    pub fn all_is_well(&self) {
        self.0.borrow_mut().is_well = true;
    }

    pub fn answers(&self) -> usize {
        self.0.borrow().answers
    }

    pub fn errors(&self) -> usize {
        self.0.borrow().errors
    }

    /// The result, and how long the call took.
    pub fn first_error(&self) -> (Error, Duration) {
        self.0.borrow().first_error.clone().expect("an error")
    }

    pub fn summary(self, seed: u64) -> Seen {
        println!("seed {seed}: {} answers, {} errors", self.answers(), self.errors());
        self
    }

    /// Makes a call and checks that it ends. An error must name the problem.
    async fn call<T>(&self, what: &str, call: impl Future<Output = Result<T>>) -> Option<T> {
        let began = Instant::now();
        let ended = timeout(LIMIT, call).await;
        let ended = ended.unwrap_or_else(|_| panic!("{what} hangs at {:?}", turmoil::elapsed()));
        let e = match ended {
            Ok(value) => return Some(value),
            Err(e) => e,
        };
        let expected = match e.code() {
            Code::Unavailable | Code::Aborted => true,
            Code::DeadlineExceeded => what == "opening",
            // A restarted ps has lost its variables.
            Code::FailedPrecondition => e.message().contains("uninitialized"),
            _ => false,
        };
        let names_a_task = e.message().contains("/job:");
        assert!(expected && names_a_task, "{what} at {:?}: {e}", turmoil::elapsed());
        let mut state = self.0.borrow_mut();
        state.errors += 1;
        state.first_error.get_or_insert((e, began.elapsed()));
        None
    }
}

/// Runs a client on the chief until the cluster has recovered.
pub fn start(sim: &mut turmoil::Sim<'_>) -> Seen {
    let seen = Seen::default();
    let client = seen.clone();
    sim.client(CHIEF, async move {
        let server = network::task("worker", 0).await?;
        let master = server.master();
        tokio::spawn(server.serve(std::future::pending()));
        while !work(&master, &client).await {}
        Ok(())
    });
    seen
}

/// Runs one session up to its first error. Returns whether there was none.
async fn work(master: &InProcessMaster, seen: &Seen) -> bool {
    let def = sum();
    let options = ConnectOptions { timeout: 2 * LIMIT, ..ConnectOptions::default() };
    let Some(session) = seen.call("opening", RemoteSession::within(master, &def, &options)).await
    else {
        return false;
    };
    let is_well = steps(&session, seen).await;
    seen.call("closing", session.close()).await;
    is_well
}

async fn steps(session: &RemoteSession, seen: &Seen) -> bool {
    let init = session.run(vec![], &[], &["set0", "set1", "set_large"], None);
    if seen.call("initialising", init).await.is_none() {
        return false;
    }
    let mut well = 0;
    while well < ENOUGH {
        let step = session.run(vec![], &["sum"], &[], None);
        let Some(sum) = seen.call("a step", step).await else { return false };
        assert_eq!(sum[0].scalar_value::<f32>().unwrap(), 1.0 + 2.0 + 4.0);
        let mut state = seen.0.borrow_mut();
        state.answers += 1;
        well = if state.is_well { well + 1 } else { 0 };
    }
    true
}

/// Adds a number of each ps and an element of a large tensor on the worker; the chief fetches the
/// sum.
fn sum() -> GraphDef {
    let (ps0, ps1, worker) = ("/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:1");
    let large = Tensor::vector(&vec![4f32; LARGE]);
    let variable = |b: ferroflow_testing::GraphBuilder,
                    name: &str,
                    shape: PartialShape,
                    on: &str| {
        b.op(name, "VariableV2", &[]).attr("dtype", DType::Float).attr("shape", shape).device(on)
    };
    let mut b = graph().dtype(DType::Float);
    b = variable(b, "v0", PartialShape::scalar(), ps0);
    b = variable(b, "v1", PartialShape::scalar(), ps1);
    b = variable(b, "large", PartialShape::from([LARGE]), ps0);
    b.constant("one", 1f32)
        .device(ps0)
        .constant("two", 2f32)
        .device(ps1)
        .constant("fours", large)
        .device(ps0)
        .op("set0", "Assign", &["v0", "one"])
        .t()
        .op("set1", "Assign", &["v1", "two"])
        .t()
        .op("set_large", "Assign", &["large", "fours"])
        .t()
        .op("small_sum", "AddV2", &["v0", "v1"])
        .t()
        .device(worker)
        .constant("begin", Tensor::vector(&[(LARGE - 1) as i32]))
        .device(worker)
        .constant("size", Tensor::vector(&[1i32]))
        .device(worker)
        .op("last", "Slice", &["large", "begin", "size"])
        .t()
        .attr("Index", DType::Int32)
        .device(worker)
        .constant("scalar", Tensor::from_slice([0], &[0i32; 0]).unwrap())
        .device(worker)
        .op("last_scalar", "Reshape", &["last", "scalar"])
        .t()
        .attr("Tshape", DType::Int32)
        .device(worker)
        .op("both", "AddV2", &["small_sum", "last_scalar"])
        .t()
        .device(worker)
        .op("sum", "Identity", &["both"])
        .t()
        .device("/job:worker/task:0")
        .build()
}
