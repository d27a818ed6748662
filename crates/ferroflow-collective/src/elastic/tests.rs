//! Tests of elastic jobs with threads as processes.

use super::driver::ClosingStream;
use super::*;
use crate::engine::{Engine, EngineOptions, SubmitOptions};
use crate::group::{Group, GroupOptions};
use crate::link_cost::LinkCostModel;
use crate::reduce::ReduceOp;
use crate::wire::{read_frame, write_frame};
use ferroflow_identity::{ExpectedPeer, JobAuthority, JobToken, SecureStream, Trust};
use std::io::{Read, Write};
use std::net::TcpListener;

fn driver(min: usize, max: usize, start: usize) -> Driver {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let timeout = Duration::from_secs(20);
    Driver::start(listener, DriverOptions { min, max, start, timeout, token: "t".into() }).unwrap()
}

fn options() -> GroupOptions {
    GroupOptions { model: Some(LinkCostModel::default()), ..GroupOptions::default() }
}

fn member(driver: &Driver, name: &str) -> ElasticMember {
    ElasticMember::connect(&driver.address().to_string(), "t", name).unwrap()
}

#[test]
fn messages_are_decoded_as_encoded() {
    let words = [
        WorkerMessage::Hello { name: "n".into(), is_server: false },
        WorkerMessage::Hello { name: "s".into(), is_server: true },
        WorkerMessage::Ready { address: "a:1".into() },
        WorkerMessage::Done,
        WorkerMessage::GroupFormed { epoch: 1 << 40 },
        WorkerMessage::GroupFailed { epoch: 3, why: "w".into() },
        WorkerMessage::Settled { epoch: 4 },
    ];
    for word in words {
        assert_eq!(WorkerMessage::decode(&word.encode()).unwrap(), word);
    }
    let answers = [
        DriverMessage::Assign {
            epoch: 1 << 40,
            rank: 2,
            size: 3,
            servers: 1,
            servers_only: true,
            address: "a:1".into(),
            ps: "b:1,c:2".into(),
        },
        DriverMessage::NewcomersWaiting,
        DriverMessage::RankLost { epoch: 7 },
        DriverMessage::Refused(err!(Aborted, "why")),
    ];
    for answer in answers {
        assert_eq!(DriverMessage::decode(&answer.encode()).unwrap(), answer);
    }
    assert!(WorkerMessage::decode(&[1, 2, 3]).is_err() && DriverMessage::decode(&[9]).is_err());
}

#[test]
fn ranks_learn_the_parameter_servers_with_their_next_rank() {
    let driver = driver(1, 1, 1);
    driver.set_ps(vec!["a:1".into()]);
    let mut member = member(&driver, "a");
    drop(member.next_group(&options()).unwrap());
    assert_eq!(member.ps(), ["a:1"]);
    let group = member.next_group(&options()).unwrap();
    driver.set_ps(vec!["a:1".into(), "b:2".into()]);
    while !member.has_newcomers() {
        std::thread::yield_now();
    }
    drop(group);
    drop(member.next_group(&options()).unwrap());
    assert_eq!(member.ps(), ["a:1", "b:2"]);
    assert_eq!(driver.report().settled, None);
    member.settled();
    while driver.report().settled.is_none() {
        std::thread::yield_now();
    }
    assert_eq!(driver.report().settled.unwrap(), ["a:1", "b:2"]);
}

#[test]
fn survivors_of_a_lost_rank_form_a_new_group_and_a_newcomer_joins() {
    let driver = driver(1, 3, 3);
    let (go, leave) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let driver = &driver;
        let options = options();
        let survivor = |name: &'static str| {
            let options = options.clone();
            move || {
                let mut member = member(driver, name);
                let mut group = member.next_group(&options).unwrap();
                assert_eq!(group.size(), 3);
                // Runs until a rank dies, which is an error of this group.
                let e = loop {
                    let mut x = [1f32];
                    if let Err(e) = group.all_reduce(&mut x, ReduceOp::Sum) {
                        break e;
                    }
                    assert_eq!(x, [3.0]);
                };
                assert_eq!(e.code(), Code::Unavailable);
                drop(group);
                let mut group = member.next_group(&options).unwrap();
                let mut sizes = vec![group.size()];
                // Runs until there is a newcomer. All ranks learn that in the same step.
                while sizes.last() != Some(&3) {
                    let mut wanted = [u8::from(member.has_newcomers())];
                    group.all_reduce(&mut wanted, ReduceOp::Max).unwrap();
                    if wanted[0] == 1 {
                        drop(group);
                        group = member.next_group(&options).unwrap();
                        sizes.push(group.size());
                    }
                }
                let mut x = [1f32];
                group.all_reduce(&mut x, ReduceOp::Sum).unwrap();
                member.done();
                (sizes, x)
            }
        };
        let (a, b) = (scope.spawn(survivor("a")), scope.spawn(survivor("b")));
        let one = options.clone();
        scope.spawn(move || {
            let mut member = member(driver, "victim");
            let mut group = member.next_group(&one).unwrap();
            for _ in 0..5 {
                group.all_reduce(&mut [1f32], ReduceOp::Sum).unwrap();
            }
            // Closes all connections without leaving, like a killed process.
            group.control().unwrap().cut();
            drop(member);
            drop(group);
            go.send(()).unwrap();
        });
        leave.recv().unwrap();
        let late = scope.spawn(move || {
            let mut member = member(driver, "late");
            let mut group = member.next_group(&options).unwrap();
            assert!(group.rank() == group.size() - 1, "newcomers come last");
            while group.size() < 3 {
                let mut wanted = [u8::from(member.has_newcomers())];
                group.all_reduce(&mut wanted, ReduceOp::Max).unwrap();
                if wanted[0] == 1 {
                    drop(group);
                    group = member.next_group(&options).unwrap();
                }
            }
            let mut x = [1f32];
            group.all_reduce(&mut x, ReduceOp::Sum).unwrap();
            member.done();
            x
        });
        for survivor in [a, b] {
            let (sizes, x) = survivor.join().unwrap();
            assert!(sizes == [2, 3] || sizes == [3], "{sizes:?}");
            assert_eq!(x, [3.0]);
        }
        assert_eq!(late.join().unwrap(), [3.0]);
    });
    let report = driver.report();
    assert_eq!((report.joined, report.lost), (4, 1));
}

/// Trains in two ranks until there is no server, and then until there is one. Returns the numbers
/// of servers of all groups.
fn train_with_servers(mut member: ElasticMember, options: &GroupOptions) -> Vec<usize> {
    let mut servers = Vec::new();
    loop {
        let group = member.next_group(options).unwrap();
        assert_eq!(group.size(), 2);
        servers.push(group.servers());
        let engine = Engine::start(group, EngineOptions::default()).unwrap();
        let sum = |name: String, x: f32, op: ReduceOp| {
            let handle = engine.all_reduce(&name, vec![x], SubmitOptions::op(op))?;
            handle.wait().map(|sum| sum[0])
        };
        for step in 0.. {
            let newcomers = f32::from(u8::from(member.has_newcomers()));
            let Ok(newcomers) = sum(format!("newcomers {step}"), newcomers, ReduceOp::Max) else {
                break;
            };
            match sum(format!("x {step}"), 1.0, ReduceOp::Sum) {
                Ok(sum) => assert_eq!(sum, 2.0),
                Err(_) => break,
            }
            if newcomers > 0.0 {
                break;
            }
            if servers.contains(&0) && servers.last() == Some(&1) {
                member.done();
                return servers;
            }
        }
    }
}

#[test]
fn servers_sum_for_elastic_ranks_and_are_replaced() {
    let driver = driver(2, 2, 2);
    driver.expect_servers(1, false);
    let address = driver.address().to_string();
    let server = |name| ElasticMember::connect_server(&address, "t", name, Trust::default());
    let options = options();
    std::thread::scope(|scope| {
        let options = &options;
        let [a, b] = ["a", "b"].map(|name| {
            let member = member(&driver, name);
            scope.spawn(move || train_with_servers(member, options))
        });
        let mut first = server("server 0").unwrap();
        let group = first.next_group(options).unwrap();
        assert!(group.is_server());
        assert_eq!(driver.report().servers, 1);
        // Closes all connections without leaving, like a killed process.
        group.control().unwrap().cut();
        drop(first);
        drop(group);
        // The ranks go on without a server.
        while driver.report().servers > 0 {
            std::thread::yield_now();
        }
        let mut second = server("server 1").unwrap();
        let end = loop {
            match second.next_group(options) {
                Ok(group) => Engine::start(group, EngineOptions::default()).unwrap().serve(),
                Err(e) => break e,
            }
            .unwrap_or_else(|e| assert_eq!(e.code(), Code::Unavailable, "{e}"));
        };
        assert!(is_job_done(&end), "{end}");
        for servers in [a.join().unwrap(), b.join().unwrap()] {
            assert_eq!((servers[0], servers.last()), (1, Some(&1)), "{servers:?}");
            assert!(servers.contains(&0), "{servers:?}");
        }
    });
}

/// Killed processes come back at other addresses, first as the last rank and then as rank 0.
#[test]
fn ranks_that_come_back_at_a_new_address_join_the_next_group() {
    let authority = JobAuthority::new().unwrap();
    let trust = |role: &str| {
        Trust::with(authority.credentials(&[role.into(), "member".into()], &[], 1).unwrap())
    };
    let listener = TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let timeout = Duration::from_secs(20);
    let options_of_driver = DriverOptions { min: 2, max: 2, start: 2, timeout, token: "t".into() };
    let driver = Driver::start_with(listener, options_of_driver, trust(DRIVER_ROLE)).unwrap();
    let options = options();
    let connect = |host: &str, name: &str| {
        let address = format!("{host}:{port}");
        ElasticMember::connect_with(&address, "t", name, trust("rank-0")).unwrap()
    };
    let sum = |group: &mut Group| {
        let mut x = [1f32];
        group.all_reduce(&mut x, ReduceOp::Sum).map(|()| x[0])
    };
    // Both processes ask for ranks at the same time.
    let meet = |a: &mut ElasticMember, b: &mut ElasticMember| {
        std::thread::scope(|scope| {
            let b = scope.spawn(|| {
                let mut group = b.next_group(&options).unwrap();
                (sum(&mut group).unwrap(), group)
            });
            let mut a = a.next_group(&options).unwrap();
            let (sums, b) = (sum(&mut a).unwrap(), b.join().unwrap());
            assert_eq!((sums, b.0), (2.0, 2.0));
            (a, b.1)
        })
    };
    // Closes all connections of a process without leaving.
    let kill = |member: ElasticMember, group: Group| {
        group.control().unwrap().cut();
        drop(member);
        drop(group);
    };
    let (mut a, mut b) = (connect("127.0.0.1", "a"), connect("127.0.0.1", "b"));
    let (mut of_a, of_b) = meet(&mut a, &mut b);
    kill(b, of_b);
    assert!(sum(&mut of_a).is_err());
    drop(of_a);
    let mut b = connect("[::1]", "b");
    let (of_a, mut of_b) = meet(&mut a, &mut b);
    kill(a, of_a);
    assert!(sum(&mut of_b).is_err());
    drop(of_b);
    let mut a = connect("127.0.0.1", "a");
    let (of_a, of_b) = meet(&mut a, &mut b);
    assert_eq!((of_a.rank(), of_b.rank()), (1, 0));
    drop((of_a, of_b));
    assert_eq!((driver.report().joined, driver.report().lost), (4, 2));
}

#[test]
fn too_few_processes_are_refused_with_a_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let timeout = Duration::from_millis(30);
    let options = DriverOptions { min: 2, max: 4, start: 2, timeout, token: "t".into() };
    let driver = Driver::start(listener, options).unwrap();
    let e = member(&driver, "alone").next_group(&self::options()).err().unwrap();
    assert_eq!(e.code(), Code::DeadlineExceeded);
    assert!(e.message().contains("1 processes are ready, at least 2"), "{e}");
    let e = ElasticMember::connect(&driver.address().to_string(), "wrong", "x").err().unwrap();
    assert_eq!(e.code(), Code::PermissionDenied, "{e}");
}

#[test]
fn the_first_epoch_starts_with_at_least_the_minimum_after_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let timeout = Duration::from_millis(30);
    let options = DriverOptions { min: 1, max: 4, start: 3, timeout, token: "t".into() };
    let driver = Driver::start(listener, options).unwrap();
    let mut alone = member(&driver, "alone");
    assert_eq!(alone.next_group(&self::options()).unwrap().size(), 1);
}

#[test]
fn a_process_that_joins_after_the_job_is_done_is_refused() {
    let driver = driver(1, 1, 1);
    let mut first = member(&driver, "first");
    let group = first.next_group(&options()).unwrap();
    // There is no rank for it while the first process works.
    let mut waiting = member(&driver, "waiting");
    let waits = std::thread::spawn(move || waiting.next_group(&options()).err().unwrap());
    while driver.report().joined < 2 {
        std::thread::yield_now();
    }
    drop(group);
    first.done();
    let e = waits.join().unwrap();
    assert_eq!((e.code(), e.message()), (Code::FailedPrecondition, "the job is done"));
    assert!(super::is_job_done(&e));
    let e = member(&driver, "late").next_group(&options()).err().unwrap();
    assert_eq!(e.message(), "the job is done");
    let report = driver.report();
    assert_eq!((report.epochs, report.done, report.lost), (1, 1, 0));
    assert_eq!(report.late, ["waiting", "late"]);
}

#[test]
fn ranks_leave_their_epoch_when_the_driver_is_gone() {
    let driver = driver(1, 1, 1);
    let mut member = member(&driver, "a");
    let group = member.next_group(&options()).unwrap();
    assert!(!member.has_newcomers());
    drop(driver);
    while !member.has_newcomers() {
        std::thread::yield_now();
    }
    drop(group);
    assert!(member.next_group(&options()).is_err());
}

#[test]
fn dropping_the_driver_ends_the_wait_of_all_processes() {
    let driver = driver(2, 2, 2);
    let mut waiting = member(&driver, "one");
    let thread = std::thread::spawn(move || waiting.next_group(&options()).err().unwrap());
    while driver.report().joined == 0 {
        std::thread::yield_now();
    }
    drop(driver);
    assert_eq!(thread.join().unwrap().code(), Code::Unavailable);
}

#[test]
fn a_timeout_too_large_for_the_clock_never_expires() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (timeout, token) = (Duration::MAX, "t".to_string());
    let options = DriverOptions { min: 2, max: 2, start: 2, timeout, token };
    let driver = Driver::start(listener, options).unwrap();
    let mut seats = ["a", "b"].map(|name| member(&driver, name));
    let [a, b] = &mut seats;
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(a.next_group(&self::options()).unwrap().size(), 2));
        assert_eq!(b.next_group(&self::options()).unwrap().size(), 2);
    });
}

/// Two ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

#[test]
fn dropping_the_driver_side_closes_the_connection_of_a_process() {
    let (mut process, driver) = pair();
    // Another handle to the connection, as the reader thread has one.
    let _other = driver.try_clone().unwrap();
    drop(ClosingStream(SecureStream::plain(driver)));
    assert_eq!(process.read(&mut [0]).unwrap(), 0);
}

/// Half of them are silent, the others send nonsense.
#[test]
fn strangers_do_not_keep_processes_from_the_driver() {
    let driver = driver(1, 1, 1);
    let strangers: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(driver.address()).unwrap()).collect();
    for mut stranger in strangers.iter().step_by(2) {
        let _ = stranger.write_all(&[0xff; 100]);
    }
    let mut first = member(&driver, "first");
    drop(first.next_group(&options()).unwrap());
    first.done();
    let e = ElasticMember::connect(&driver.address().to_string(), "guess", "x").err().unwrap();
    assert_eq!(e.code(), Code::PermissionDenied);
    assert_eq!(driver.report().joined, 1);
}

/// A process that gets ranks and never connects to others. Returns why it was refused and how many
/// ranks it had. `None` if the connection ended without a reason.
fn unreachable_member(driver: &Driver, name: &str) -> Option<(Error, u32)> {
    let stream = TcpStream::connect(driver.address()).unwrap();
    let expected = ExpectedPeer { address: "127.0.0.1", role: None };
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let (trust, token) = (Trust::default(), JobToken::new("t"));
    let stream = SecureStream::connect(stream, &trust, &token, expected, deadline).unwrap();
    let say = |word: WorkerMessage| write_frame(&mut &stream, &word.encode()).unwrap();
    say(WorkerMessage::Hello { name: name.into(), is_server: false });
    let ready = || WorkerMessage::Ready { address: "127.0.0.1:1".into() };
    say(ready());
    let mut places = 0;
    while let Ok(Some(frame)) = read_frame(&mut &stream) {
        match DriverMessage::decode(&frame).unwrap() {
            DriverMessage::Assign { epoch, .. } => {
                places += 1;
                say(WorkerMessage::GroupFailed { epoch, why: "no route".into() });
                say(ready());
            }
            DriverMessage::Refused(why) => return Some((why, places)),
            DriverMessage::NewcomersWaiting | DriverMessage::RankLost { .. } => {}
        }
    }
    None
}

#[test]
fn ranks_that_can_never_connect_are_refused_with_the_reason() {
    let driver = driver(2, 2, 2);
    std::thread::scope(|scope| {
        let both = ["a", "b"].map(|name| {
            let driver = &driver;
            scope.spawn(move || unreachable_member(driver, name).unwrap())
        });
        for one in both {
            let (why, places) = one.join().unwrap();
            assert_eq!((why.code(), places), (Code::Unavailable, 3));
            assert!(why.message().contains("3 times in a row"), "{why}");
            assert!(why.message().ends_with(": no route"), "{why}");
        }
    });
    assert_eq!(driver.report().epochs, 3);
}

#[test]
fn a_newcomer_that_cannot_reach_the_ranks_is_left_out_of_later_epochs() {
    let driver = driver(1, 2, 1);
    std::thread::scope(|scope| {
        let mut first = member(&driver, "first");
        drop(first.next_group(&options()).unwrap());
        let driver = &driver;
        let newcomer = scope.spawn(move || unreachable_member(driver, "newcomer").unwrap());
        while !first.has_newcomers() {
            std::thread::yield_now();
        }
        // The first epoch with the newcomer fails.
        assert_eq!(first.next_group(&options()).unwrap().size(), 1);
        assert_eq!(driver.report().epochs, 3);
        assert!(!first.has_newcomers());
        first.done();
        let (why, places) = newcomer.join().unwrap();
        assert_eq!((why.message(), places), ("the job is done", 1));
    });
}

#[test]
fn connections_to_the_driver_use_keepalive() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    watch(&stream).unwrap();
    assert!(sockopt::socket_keepalive(&stream).unwrap());
    assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), Duration::from_secs(10));
}
