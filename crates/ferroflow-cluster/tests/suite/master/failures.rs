//! Tasks that fail, die, hang or are missing.

use crate::master::fixture::*;
use crate::master::proxy::Proxy;
use ferroflow_core::{Code, DType, Result};
use ferroflow_graph::{AttrList, GraphDef};
use ferroflow_testing::graph;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// `wait` dequeues from a queue on `task` that stays empty until `put` runs. `here` and `free` do
/// not need that task.
fn waiting_for(task: &str) -> GraphDef {
    let types = || AttrList::Types(vec![DType::Float]);
    graph()
        .dtype(DType::Float)
        .op("q", "FIFOQueueV2", &[])
        .attr("component_types", types())
        .attr("shared_name", "q")
        .device(task)
        .op("take", "QueueDequeueV2", &["q"])
        .attr("component_types", types())
        .op("wait", "Neg", &["take"])
        .t()
        .device(WORKER0)
        .constant("one", 1f32)
        .device(task)
        .op("put", "QueueEnqueueV2", &["q", "one"])
        .attr("Tcomponents", types())
        .op("size", "QueueSizeV2", &["q"])
        .constant("free", 7f32)
        .build()
}

type Running = JoinHandle<Result<Vec<f32>>>;

/// Starts a step that waits on `task`.
async fn begin_wait(
    cluster: &Cluster,
    task: &str,
) -> (Arc<ferroflow_cluster::RemoteSession>, Running) {
    let session = Arc::new(cluster.session(WORKER0, &waiting_for(task)).await);
    // The step ran once before, so it is registered and starts quickly.
    session.run(vec![], &[], &["put"], Some(FOREVER)).await.unwrap();
    assert_eq!(floats(&session, &["wait"]).await.unwrap(), [-1.0]);
    let mine = session.clone();
    let running = tokio::spawn(async move { floats(&mine, &["wait"]).await });
    // Other steps run at the same time.
    assert_eq!(floats(&session, &["free"]).await.unwrap(), [7.0]);
    (session, running)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_cause_reaches_the_client_with_its_task() {
    let cluster = Cluster::start();
    // Both workers wait for the ps, whose placeholder was not fed.
    let def = graph()
        .dtype(DType::Float)
        .placeholder("bad")
        .device(PS)
        .op("a", "Neg", &["bad"])
        .t()
        .device(WORKER0)
        .op("b", "Neg", &["bad"])
        .t()
        .device(WORKER1)
        .op("c", "AddV2", &["a", "b"])
        .t()
        .device(WORKER0)
        .build();
    let session = cluster.session(WORKER0, &def).await;
    for _ in 0..5 {
        let e = floats(&session, &["c"]).await.unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument);
        assert!(
            e.message().starts_with(
                "From /job:ps/replica:0/task:0:\nYou must feed a value for placeholder tensor 'bad'"
            ),
            "{e}"
        );
        assert!(e.message().contains("[[{{node bad}}]]"), "{e}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_task_ends_the_steps_that_need_it() {
    let mut cluster = Cluster::start();
    let other = cluster.session(WORKER1, &graph().constant("free", 8f32).build()).await;
    let (session, running) = begin_wait(&cluster, PS).await;
    cluster.kill(PS);
    let e = running.await.unwrap().unwrap_err();
    assert_eq!(e.code(), Code::Unavailable, "{e}");
    assert!(e.message().contains("/job:ps/replica:0/task:0"), "{e}");
    let e = floats(&session, &["wait"]).await.unwrap_err();
    assert_eq!(e.code(), Code::Unavailable, "{e}");
    // Steps that do not need the task still work.
    assert_eq!(floats(&session, &["free"]).await.unwrap(), [7.0]);
    assert_eq!(floats(&other, &["free"]).await.unwrap(), [8.0]);
    Arc::into_inner(session).unwrap().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_task_fails_the_steps_of_the_old_one() {
    let mut cluster = Cluster::start();
    let (session, running) = begin_wait(&cluster, PS).await;
    cluster.kill(PS);
    running.await.unwrap().unwrap_err();
    cluster.restart(PS).await;
    // The first calls may reach the port before the new task serves it.
    let e = loop {
        let e = floats(&session, &["wait"]).await.unwrap_err();
        if e.code() != Code::Unavailable {
            break e;
        }
    };
    assert_eq!(e.code(), Code::Aborted, "{e}");
    let again = cluster.session(WORKER0, &waiting_for(PS)).await;
    again.run(vec![], &[], &["put"], Some(FOREVER)).await.unwrap();
    assert_eq!(floats(&again, &["wait"]).await.unwrap(), [-1.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_task_ends_the_steps_that_need_it() {
    let proxy = Proxy::bind().await;
    let address = proxy.address();
    let mut frozen = None;
    let cluster = Cluster::with_ps_behind(|real| {
        frozen = Some(proxy.forward_to(real));
        address
    });
    let frozen = frozen.unwrap();
    let (session, running) = begin_wait(&cluster, PS).await;
    frozen.send_replace(true);
    let e = running.await.unwrap().unwrap_err();
    assert_eq!(e.code(), Code::Unavailable, "{e}");
    assert!(e.message().contains("does not answer"), "{e}");
    assert_eq!(floats(&session, &["free"]).await.unwrap(), [7.0]);
    // Steps work again when the task answers again.
    frozen.send_replace(false);
    session.run(vec![], &[], &["put"], Some(FOREVER)).await.unwrap();
    assert_eq!(floats(&session, &["wait"]).await.unwrap(), [-1.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_a_session_ends_its_steps_everywhere() {
    let cluster = Cluster::start();
    let (session, running) = begin_wait(&cluster, WORKER1).await;
    let other = cluster.session(WORKER0, &waiting_for(WORKER1)).await;
    // The step still uses the client's session, so close with a raw call.
    drop(session);
    running.abort();
    let _ = running.await;
    // The abandoned step no longer waits on the queue: the next step gets the element.
    other.run(vec![], &[], &["put"], Some(FOREVER)).await.unwrap();
    let got = tokio::time::timeout(FOREVER, floats(&other, &["wait"])).await.unwrap();
    assert_eq!(got.unwrap(), [-1.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_a_session_times_out_and_names_the_missing_task() {
    let timeout = Duration::from_millis(300);
    let cluster = Cluster::of(&[PS, WORKER0, WORKER1], &[WORKER1], timeout);
    let e = cluster.try_session(WORKER0, &GraphDef::default()).await.err().unwrap();
    assert_eq!(e.code(), Code::DeadlineExceeded, "{e}");
    assert!(e.message().contains("/job:worker/replica:0/task:1"), "{e}");
    assert!(e.message().contains(cluster.address(WORKER1)), "{e}");
    assert!(!e.message().contains("/job:ps"), "{e}");
}
