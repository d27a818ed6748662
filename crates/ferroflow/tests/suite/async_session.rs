//! Asynchronous sessions behave like blocking ones, in this process and on a server.

use ferroflow::cluster::{BackgroundServer, ClusterSpec, ServerOptions};
use ferroflow::prelude::*;
use std::time::Duration;

/// The time limit of a test.
const LONG: Duration = Duration::from_secs(60);

fn run(test: impl Future<Output = Result<()>>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LONG, test).await.unwrap().unwrap() });
}

/// A server on a free port.
fn server() -> BackgroundServer {
    let cluster = ClusterSpec::parse("worker=127.0.0.1:0").unwrap();
    BackgroundServer::start(ServerOptions::new(cluster, "worker", 0)).unwrap()
}

/// Runs a test on a local and on a remote session.
fn on_both<T: Future<Output = Result<()>>>(test: impl Fn(Graph, Option<String>) -> T) {
    run(test(Graph::new(), None));
    let server = server();
    run(test(Graph::new(), Some(server.target().to_string())));
}

async fn open(g: &Graph, target: Option<String>) -> Result<AsyncSession> {
    match target {
        None => AsyncSession::local(g).await,
        Some(target) => AsyncSession::connect(&target, g).await,
    }
}

#[test]
fn many_tasks_can_run_a_callable_concurrently() {
    on_both(|g, target| async move {
        let x = g.placeholder::<f32>("x", [None]);
        let (sum, count) = (x.sum_all(), x.size());
        let s = open(&g, target).await?;
        let fetches = (sum.scalar::<f32>(), count.scalar::<i32>());
        let f = std::sync::Arc::new(s.callable(&[&x], fetches).await?);
        let call = |n: usize| {
            let f = f.clone();
            tokio::spawn(async move { f.call(&[Tensor::vector(&vec![2.0f32; n])]).await })
        };
        let calls: Vec<_> = (1..20).map(call).collect();
        for (n, call) in (1..20).zip(calls) {
            assert_eq!(call.await.unwrap()?, (2.0 * n as f32, n));
        }
        let e = f.call(&[]).await.unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument, "{e}");
        Ok(())
    });
}

#[test]
fn a_callable_can_use_nodes_added_later() {
    on_both(|g, target| async move {
        let x = g.placeholder::<f32>("x", ());
        let s = open(&g, target).await?;
        let later = &x * 3.0;
        let f = s.callable(&[&x], later.scalar::<f32>()).await?;
        assert_eq!(f.call(&[Tensor::scalar(2.0f32)]).await?, 6.0);
        Ok(())
    });
}

#[test]
fn a_partial_run_feeds_and_fetches_in_parts() {
    on_both(|g, target| async move {
        let (a, b) = (g.placeholder::<f32>("a", ()), g.placeholder::<f32>("b", ()));
        let double = &a * 2.0;
        let sum = &double + &b;
        let s = open(&g, target).await?;
        let step = s.partial_run(&[&a, &b], (&double, &sum)).await?;
        let early = step.run_fed((), sum.scalar::<f32>()).await.unwrap_err();
        assert_eq!(early.code(), Code::InvalidArgument, "{early}");
        let half = step.run_fed((&a, 3.0), double.scalar::<f32>()).await?;
        let again = step.run_fed((&a, 3.0), ()).await.unwrap_err();
        assert!(again.message().contains("has already been fed"), "{again}");
        assert_eq!(step.run_fed((&b, half), sum.scalar::<f32>()).await?, 12.0);
        let over = step.run_fed((), double.scalar::<f32>()).await.unwrap_err();
        assert_eq!(over.code(), Code::InvalidArgument, "{over}");
        Ok(())
    });
}

#[test]
fn only_the_first_part_runs_operations() {
    on_both(|g, target| async move {
        let x = g.placeholder::<f32>("x", ());
        let v = g.variable("v", 1.0);
        let (add, init) = (v.assign_add(&x), g.global_initializer());
        let s = open(&g, target).await?;
        s.run(&init).await?;
        let step = s.partial_run(&[&x], &add).await?;
        let e = step.run_fed((&x, 2.0), &add).await.unwrap_err();
        assert!(e.message().contains("a later part cannot fetch one"), "{e}");
        step.run_fed((&x, 2.0), ()).await?;
        assert_eq!(s.run(v.scalar::<f32>()).await?, 3.0);
        Ok(())
    });
}

#[test]
fn parts_and_callables_keep_the_deadline() {
    on_both(|g, target| async move {
        let x = g.placeholder::<f32>("x", ());
        let queue = g.op("FIFOQueueV2").attr("component_types", vec![DType::Float]).output();
        let never = g
            .op("QueueDequeueV2")
            .input(&queue)
            .attr("component_types", vec![DType::Float])
            .output();
        let y = &x + &never;
        let s = open(&g, target).await?.with_timeout(Duration::from_millis(200));
        let f = s.callable(&[&x], &y).await?;
        let e = f.call(&[Tensor::scalar(1.0f32)]).await.unwrap_err();
        assert_eq!(e.code(), Code::DeadlineExceeded, "{e}");
        let step = s.partial_run(&[&x], &y).await?;
        let e = step.run_fed((&x, 1.0), &y).await.unwrap_err();
        assert_eq!(e.code(), Code::DeadlineExceeded, "{e}");
        Ok(())
    });
}

#[test]
fn errors_of_parts_and_callables_name_the_source_line() {
    on_both(|g, target| async move {
        let x = g.placeholder::<i32>("x", ());
        let line = line!() + 1;
        let y = g.constant(7) / &x;
        let s = open(&g, target).await?;
        let at = format!("async_session.rs:{line}");
        let f = s.callable(&[&x], &y).await?;
        let e = f.call(&[Tensor::scalar(0i32)]).await.unwrap_err();
        assert!(e.message().contains(&at), "{e}");
        let step = s.partial_run(&[&x], &y).await?;
        let e = step.run_fed((&x, 0), &y).await.unwrap_err();
        assert!(e.message().contains(&at), "{e}");
        Ok(())
    });
}
