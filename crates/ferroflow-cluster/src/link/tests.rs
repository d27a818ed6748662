//! Links between two ends in one process, over the system's sockets.

use super::*;
use crate::channels::Channels;
use crate::listen::{Handed, listen};
use crate::messages::{GetStatusResponse, LinkOffer};
use crate::net::{SystemNetwork, TaskNetwork};
use crate::part::PartOutput;
use crate::rpc;
use crate::wire::Encode;
use ferroflow_core::{Code, Tensor, err};
use ferroflow_identity::Trust;
use ferroflow_metrics::TaskMetrics;
use ferroflow_simulated_gpu::{SimulatedGpu, SimulatedGpuOptions};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// A call of the receiver.
#[derive(Debug)]
enum Event {
    Connected(String),
    Lost(String),
    Arrived(i64, String, Result<Received>),
    CleanUp(i64),
    Abandoned(i64),
    LinkLost(u64, String),
    Running,
}

/// Records its calls. A part called `fails` fails, one called `waits` waits, others succeed at
/// once.
struct Told {
    events: mpsc::UnboundedSender<Event>,
    waiting: Mutex<Vec<PartDone>>,
    /// The link back to any caller.
    way_back: Mutex<Option<Arc<Link>>>,
}

impl Told {
    fn new() -> (Arc<Told>, mpsc::UnboundedReceiver<Event>) {
        let (events, told) = mpsc::unbounded_channel();
        let told_so = Told { events, waiting: Mutex::default(), way_back: Mutex::default() };
        (Arc::new(told_so), told)
    }

    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

impl Receiver for Told {
    fn admit(&self, _: &LinkSource) -> Result<()> {
        Ok(())
    }
    fn connected(&self, from: &Arc<LinkSource>) -> Result<()> {
        self.tell(Event::Connected(from.task.clone()));
        Ok(())
    }
    fn may_send_as(&self, _: &LinkSource, _: &str) -> bool {
        true
    }

    fn lost(&self, from: &Arc<LinkSource>, _: &Error) {
        self.tell(Event::Lost(from.task.clone()));
    }
    fn peer(&self, _: &str) -> Arc<PeerCounters> {
        Arc::default()
    }

    fn arrived(
        &self,
        _: &PeerCounters,
        step_id: i64,
        key: &str,
        value: Result<Received>,
        _: &InlineScope,
    ) {
        self.tell(Event::Arrived(step_id, key.to_string(), value));
    }
    fn room(&self, _: i64) -> Option<BoxFuture<()>> {
        None
    }
    fn way_back(&self, _: &LinkSource) -> Option<Arc<Link>> {
        self.way_back.lock().clone()
    }
    fn run(
        &self,
        _: &LinkSource,
        part: LinkPart<'_>,
        cancel: CancelToken,
        scope: &InlineScope,
        done: PartDone,
    ) {
        match part.graph {
            "fails" => done(Err(err!(InvalidArgument, "bad graph")), scope),
            "waits" => {
                self.waiting.lock().push(done);
                drop(cancel);
                self.tell(Event::Running);
            }
            _ => done(Ok(PartOutput::default()), scope),
        }
    }
    fn abandon(&self, _: &LinkSource, step_id: i64) {
        self.tell(Event::Abandoned(step_id));
    }
    fn clean_up(&self, _: &LinkSource, step_id: i64) {
        self.tell(Event::CleanUp(step_id));
    }
    fn link_lost(&self, link: u64, to: &str, _: &Error) {
        self.tell(Event::LinkLost(link, to.to_string()));
    }
}

/// A task that only accepts links.
struct Task {
    address: String,
    told: Arc<Told>,
    events: mpsc::UnboundedReceiver<Event>,
    serving: JoinSet<()>,
}

const THERE: &str = "/job:ps/replica:0/task:0";
const HERE: &str = "/job:worker/replica:0/task:0";

async fn task(path: DataPath, announced: Option<Token>) -> Task {
    task_with_gpus(path, announced, Vec::new()).await
}

async fn task_with_gpus(path: DataPath, announced: Option<Token>, gpus: Vec<Arc<dyn Gpu>>) -> Task {
    let (receiver, events) = Told::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut serving = JoinSet::new();
    let (local, local_name) = SystemNetwork.listen_local().unwrap();
    let own = Arc::new(Identity {
        task: THERE.into(),
        incarnations: vec![2],
        tickets: LinkTickets::with([7; 16]),
        path,
        local_name: local_name.clone(),
        ucx: None,
        gpus,
    });
    let (to, from) = Handed::channel();
    let trust = Trust::default();
    let tcp = Box::new(listener);
    serving.spawn(listen(
        tcp,
        to.clone(),
        own.clone(),
        receiver.clone(),
        trust.clone(),
        TaskMetrics::new("worker", 0),
    ));
    serving.spawn(listen(local, to, own, receiver.clone(), trust, TaskMetrics::new("worker", 0)));
    let link = announced.map(|token| LinkOffer { version: VERSION, token, local_name });
    let status = GetStatusResponse { devices: Vec::new(), link }.encode();
    let service = move |_: rpc::RpcRequest| std::future::ready(Ok(status.clone().into()));
    serving.spawn(rpc::RpcServer::default().serve(from, Arc::new(service), std::future::pending()));
    Task { address, told: receiver, events, serving }
}

/// The links of another task, which reports their loss.
fn links(path: DataPath) -> (Arc<Links>, Arc<Told>, mpsc::UnboundedReceiver<Event>) {
    let own = Identity {
        task: HERE.into(),
        incarnations: vec![0x11],
        tickets: LinkTickets::with([1; 16]),
        path,
        local_name: String::new(),
        ucx: None,
        gpus: Vec::new(),
    };
    let links = Links::new(Arc::new(own), Arc::<Channels>::default(), Arc::new(SystemNetwork));
    let (told, events) = Told::new();
    let receiver: Arc<dyn Receiver> = told.clone();
    links.report_to(Arc::downgrade(&receiver));
    (links, told, events)
}

async fn linked(path: DataPath, to: &Task) -> (Arc<Links>, Arc<Link>, Arc<Told>) {
    let (links, told, _) = links(path);
    let slot = links.slot(&to.address);
    links.want(&slot).await;
    let link = slot.link().expect("a link");
    (links, link, told)
}

fn key(name: &str) -> String {
    format!("{HERE}/device:CPU:0;0000000000000011;{THERE}/device:CPU:0;{name};0:0")
}

impl Task {
    async fn next(&mut self) -> Event {
        self.events.recv().await.expect("an event")
    }

    async fn value(&mut self) -> (String, Received) {
        loop {
            if let Event::Arrived(5, key, value) = self.next().await {
                return (key, value.unwrap());
            }
        }
    }
}

/// Runs a part and waits for its end. Dropping the future cancels it.
async fn run(link: &Arc<Link>, part: &LinkPart<'_>) -> Result<Result<()>> {
    let (tell, told) = oneshot::channel();
    let _call =
        link.call(part, &InlineScope::unknown(), Box::new(move |answer| drop(tell.send(answer))));
    told.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_all_kinds_and_sizes_arrive_over_every_path() {
    for path in [DataPath::Auto, DataPath::Tcp] {
        let mut to = task(path, Some([7; 16])).await;
        let (_links, link, _told) = linked(path, &to).await;
        let tensors = [
            Tensor::scalar(2f64),
            Tensor::vector(&[true, false]),
            Tensor::vector::<f32>(&[]),
            Tensor::from_slice([100, 100], &vec![3i32; 10_000]).unwrap(),
            Tensor::vector(&vec![4u8; 3_000_001]),
            Tensor::from_strings([2], vec!["a".into(), vec![0u8; 100_000].into()]).unwrap(),
        ];
        for tensor in tensors {
            // Several times, so that memory is reused.
            for _ in 0..3 {
                assert!(link.push(
                    5,
                    &key("x"),
                    &Received::Live(tensor.clone()),
                    &InlineScope::unknown()
                ));
                let (name, value) = to.value().await;
                let Received::Live(back) = value else { panic!("dead") };
                assert_eq!((name, back), (key("x"), tensor.clone()));
            }
        }
        assert!(link.push(5, &key("dead"), &Received::Dead, &InlineScope::unknown()));
        assert!(matches!(to.value().await.1, Received::Dead));
    }
}

fn gpu(memory_limit: usize) -> Arc<dyn Gpu> {
    SimulatedGpu::new(0, SimulatedGpuOptions { memory_limit, ..SimulatedGpuOptions::default() })
}

fn key_to_gpu(id: u32) -> String {
    format!("{HERE}/device:GPU:0;0000000000000011;{THERE}/device:GPU:{id};x;0:0")
}

/// Lends a tensor, and hands over the outcome if the receiver does not take it.
fn lend(link: &Arc<Link>, key: &str, tensor: &Tensor) -> (bool, oneshot::Receiver<Result<()>>) {
    let (tell, told) = oneshot::channel();
    let refused = Box::new(move |ended| drop(tell.send(ended)));
    (link.lend(5, key, tensor, refused), told)
}

#[tokio::test(flavor = "multi_thread")]
async fn tensors_stay_in_the_memory_of_a_shared_gpu() {
    let gpu = gpu(1 << 20);
    let value = Tensor::vector(&(0..1000).map(|i| i as f32 * 0.5).collect::<Vec<_>>());
    let on_gpu = value.to_device(&gpu).unwrap();
    // With and without a link back, over which the tensor is returned.
    for has_way_back in [false, true] {
        let mut there = task_with_gpus(DataPath::Auto, Some([7; 16]), vec![gpu.clone()]).await;
        let here = task(DataPath::Auto, Some([7; 16])).await;
        let (_links, link, _told) = linked(DataPath::Auto, &there).await;
        let (_others, to_here, _other_told) = linked(DataPath::Auto, &here).await;
        if has_way_back {
            *there.told.way_back.lock() = Some(to_here);
            *here.told.way_back.lock() = Some(link.clone());
        }
        let (is_lent, returned) = lend(&link, &key_to_gpu(0), &on_gpu);
        assert!(is_lent);
        let (key, arrived) = there.value().await;
        assert_eq!(key, key_to_gpu(0));
        let Received::Live(copy) = arrived else { panic!("dead") };
        assert!(copy.gpu().is_some(), "it travelled through host memory");
        assert_ne!(copy.device_address().unwrap(), on_gpu.device_address().unwrap());
        assert_eq!(copy.to_host_blocking().unwrap(), value);
        // The loan ends without a refusal.
        assert!(returned.await.is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tensors_are_lent_only_to_the_gpu_that_has_them() {
    let (shared, other) = (gpu(1 << 20), gpu(1 << 20));
    let gpus = vec![other.clone(), shared.clone()];
    let value = Tensor::vector(&[1f32, 2.0]);
    let on_shared = value.to_device(&shared).unwrap();
    let to = task_with_gpus(DataPath::Auto, Some([7; 16]), gpus.clone()).await;
    let (_links, link, _told) = linked(DataPath::Auto, &to).await;
    assert!(!lend(&link, &key_to_gpu(0), &on_shared).0, "it is on another GPU");
    assert!(!lend(&link, &key_to_gpu(2), &on_shared).0, "there is no such GPU");
    assert!(!lend(&link, &key("x"), &on_shared).0, "it is wanted in host memory");
    assert!(!lend(&link, &key_to_gpu(1), &value).0, "it is in host memory");
    assert!(lend(&link, &key_to_gpu(1), &on_shared).0);
    let to = task_with_gpus(DataPath::Tcp, Some([7; 16]), gpus).await;
    let (_links, link, _told) = linked(DataPath::Tcp, &to).await;
    assert!(!lend(&link, &key_to_gpu(1), &on_shared).0, "the tasks use TCP");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tensor_that_is_not_taken_is_sent_another_way() {
    let gpu = gpu(3 << 20);
    let large = Tensor::vector(&vec![1u8; 2 << 20]).to_device(&gpu).unwrap();
    let small = Tensor::vector(&[1f32]).to_device(&gpu).unwrap();
    let to = task_with_gpus(DataPath::Auto, Some([7; 16]), vec![gpu.clone()]).await;
    let (_links, link, _told) = linked(DataPath::Auto, &to).await;
    // The GPU has no room for a copy.
    let (is_lent, refused) = lend(&link, &key_to_gpu(0), &large);
    assert!(is_lent);
    assert_eq!(refused.await.unwrap(), Ok(()));
    assert!(!lend(&link, &key_to_gpu(0), &small).0, "it is not tried again");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_answered_cancelled_and_cleaned_up() {
    let mut to = task(DataPath::Auto, Some([7; 16])).await;
    let (links, link, _told) = linked(DataPath::Auto, &to).await;
    assert!(matches!(to.next().await, Event::Connected(from) if from == HERE));
    let part = |graph| LinkPart { step_id: 9, session: "s", graph };
    assert_eq!(run(&link, &part("works")).await.unwrap(), Ok(()));
    let failed = run(&link, &part("fails")).await.unwrap().unwrap_err();
    assert_eq!((failed.code(), failed.message()), (Code::InvalidArgument, "bad graph"));
    let waiting = tokio::spawn({
        let (link, part) = (link.clone(), part("waits"));
        async move { run(&link, &part).await }
    });
    assert!(matches!(to.next().await, Event::Running));
    waiting.abort();
    assert!(matches!(to.next().await, Event::Abandoned(9)));
    assert!(links.clean_up_later(&links.slot(&to.address), 9));
    assert!(matches!(to.next().await, Event::CleanUp(9)));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_use_the_link_of_the_values() {
    let mut there = task(DataPath::Auto, Some([7; 16])).await;
    let here = task(DataPath::Auto, Some([7; 16])).await;
    let (_links, to_there, _told) = linked(DataPath::Auto, &there).await;
    let (_other_links, to_here, _other_told) = linked(DataPath::Auto, &here).await;
    *there.told.way_back.lock() = Some(to_here.clone());
    *here.told.way_back.lock() = Some(to_there.clone());
    let part = |graph| LinkPart { step_id: 9, session: "s", graph };
    let failed = run(&to_there, &part("fails")).await.unwrap().unwrap_err();
    assert_eq!((failed.code(), failed.message()), (Code::InvalidArgument, "bad graph"));

    // The answer was lost with that link.
    let waiting = tokio::spawn({
        let (link, part) = (to_there.clone(), part("waits"));
        async move { run(&link, &part).await }
    });
    assert!(matches!(there.next().await, Event::Connected(_)));
    assert!(matches!(there.next().await, Event::Running));
    to_there.lost_answers(&err!(Unavailable, "lost"));
    assert_eq!(waiting.await.unwrap().unwrap_err().code(), Code::Unavailable);

    // Without it, the answer comes over the connection of the call.
    to_here.close();
    assert_eq!(run(&to_there, &part("works")).await.unwrap(), Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_link_is_noticed_at_both_ends() {
    let mut to = task(DataPath::Auto, Some([7; 16])).await;
    let (links, told, mut events) = links(DataPath::Auto);
    let slot = links.slot(&to.address);
    links.want(&slot).await;
    let link = slot.link().unwrap();
    let calling = tokio::spawn({
        let link = link.clone();
        async move { run(&link, &LinkPart { step_id: 9, session: "s", graph: "waits" }).await }
    });
    assert!(matches!(to.next().await, Event::Connected(_)));
    assert!(matches!(to.next().await, Event::Running));
    to.serving.shutdown().await;
    assert_eq!(calling.await.unwrap().unwrap_err().code(), Code::Unavailable);
    let lost = events.recv().await.unwrap();
    assert!(matches!(lost, Event::LinkLost(id, task) if id == link.id && task == THERE));
    assert!(
        slot.link().is_none() && !link.push(5, &key("x"), &Received::Dead, &InlineScope::unknown())
    );
    drop(told);

    let mut to = task(DataPath::Auto, Some([7; 16])).await;
    let (links, link, _told) = linked(DataPath::Auto, &to).await;
    let part = LinkPart { step_id: 9, session: "s", graph: "works" };
    run(&link, &part).await.unwrap().unwrap();
    assert!(matches!(to.next().await, Event::Connected(_)));
    link.close();
    // A step that was not cleaned up is abandoned.
    assert!(matches!(to.next().await, Event::Abandoned(9)));
    assert!(matches!(to.next().await, Event::Lost(from) if from == HERE));
    drop(links);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_refused() {
    let mut to = task(DataPath::Auto, Some([8; 16])).await;
    let (links, _told, _) = links(DataPath::Auto);
    let slot = links.slot(&to.address);
    links.want(&slot).await;
    assert!(slot.link().is_none());
    assert!(to.events.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_without_links_are_not_retried() {
    let mut without_links = task(DataPath::Auto, None).await;
    let mut switched_off = task(DataPath::Grpc, Some([7; 16])).await;
    for to in [&mut without_links, &mut switched_off] {
        let (links, _told, _) = links(DataPath::Auto);
        let slot = links.slot(&to.address);
        links.want(&slot).await;
        assert!(slot.link().is_none());
        assert!(to.events.try_recv().is_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_only_send_values_of_its_own_devices() {
    let mut to = task(DataPath::Tcp, Some([7; 16])).await;
    let (_links, link, _told) = linked(DataPath::Tcp, &to).await;
    link.push(
        5,
        "/job:x;0000000000000012;/job:y;name;0:0",
        &Received::Dead,
        &InlineScope::unknown(),
    );
    assert!(matches!(to.next().await, Event::Connected(_)));
    assert!(matches!(to.next().await, Event::Lost(_)));
}
