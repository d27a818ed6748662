//! Ranks as threads that come, go and meet again.

use super::driver::{ClosingStream, hello};
use super::*;
use crate::group::GroupOptions;
use crate::link_cost::LinkCostModel;
use crate::reduce::ReduceOp;
use crate::wire::{read_frame, write_frame};
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

fn seat(driver: &Driver, name: &str) -> ElasticMember {
    ElasticMember::connect(&driver.address().to_string(), "t", name).unwrap()
}

#[test]
fn words_and_answers_survive_the_wire() {
    let words = [
        WorkerMessage::Hello { token: "t".into(), name: "n".into() },
        WorkerMessage::Ready { address: "a:1".into() },
        WorkerMessage::Done,
        WorkerMessage::GroupFormed { epoch: 1 << 40 },
        WorkerMessage::GroupFailed { epoch: 3, why: "w".into() },
    ];
    for word in words {
        assert_eq!(WorkerMessage::decode(&word.encode()).unwrap(), word);
    }
    let answers = [
        DriverMessage::Assign { epoch: 1 << 40, rank: 2, size: 3, address: "a:1".into() },
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
fn survivors_of_a_lost_rank_meet_again_and_a_newcomer_joins_them() {
    let driver = driver(1, 3, 3);
    let (go, leave) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let driver = &driver;
        let options = options();
        let survivor = |name: &'static str| {
            let options = options.clone();
            move || {
                let mut seat = seat(driver, name);
                let mut group = seat.next_group(&options).unwrap();
                assert_eq!(group.size(), 3);
                // Goes on until a rank dies, which is an error here and now.
                let e = loop {
                    let mut x = [1f32];
                    if let Err(e) = group.all_reduce(&mut x, ReduceOp::Sum) {
                        break e;
                    }
                    assert_eq!(x, [3.0]);
                };
                assert_eq!(e.code(), Code::Unavailable);
                drop(group);
                let mut group = seat.next_group(&options).unwrap();
                let mut sizes = vec![group.size()];
                // Until a newcomer is there, which all ranks learn at the same step.
                while sizes.last() != Some(&3) {
                    let mut wanted = [u8::from(seat.has_newcomers())];
                    group.all_reduce(&mut wanted, ReduceOp::Max).unwrap();
                    if wanted[0] == 1 {
                        drop(group);
                        group = seat.next_group(&options).unwrap();
                        sizes.push(group.size());
                    }
                }
                let mut x = [1f32];
                group.all_reduce(&mut x, ReduceOp::Sum).unwrap();
                seat.done();
                (sizes, x)
            }
        };
        let (a, b) = (scope.spawn(survivor("a")), scope.spawn(survivor("b")));
        let one = options.clone();
        scope.spawn(move || {
            let mut seat = seat(driver, "victim");
            let mut group = seat.next_group(&one).unwrap();
            for _ in 0..5 {
                group.all_reduce(&mut [1f32], ReduceOp::Sum).unwrap();
            }
            // As if the process had been killed: connections close without a word.
            group.control().unwrap().cut();
            drop(seat);
            drop(group);
            go.send(()).unwrap();
        });
        leave.recv().unwrap();
        let late = scope.spawn(move || {
            let mut seat = seat(driver, "late");
            let mut group = seat.next_group(&options).unwrap();
            assert!(group.rank() == group.size() - 1, "newcomers come last");
            while group.size() < 3 {
                let mut wanted = [u8::from(seat.has_newcomers())];
                group.all_reduce(&mut wanted, ReduceOp::Max).unwrap();
                if wanted[0] == 1 {
                    drop(group);
                    group = seat.next_group(&options).unwrap();
                }
            }
            let mut x = [1f32];
            group.all_reduce(&mut x, ReduceOp::Sum).unwrap();
            seat.done();
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

#[test]
fn too_few_ranks_are_sent_away_with_a_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let timeout = Duration::from_millis(30);
    let options = DriverOptions { min: 2, max: 4, start: 2, timeout, token: "t".into() };
    let driver = Driver::start(listener, options).unwrap();
    let e = seat(&driver, "alone").next_group(&self::options()).err().unwrap();
    assert_eq!(e.code(), Code::DeadlineExceeded);
    assert!(e.message().contains("1 processes are ready, at least 2"), "{e}");
    let stranger = ElasticMember::connect(&driver.address().to_string(), "wrong", "x").unwrap();
    let e = { stranger }.next_group(&self::options()).err().unwrap();
    assert!(matches!(e.code(), Code::PermissionDenied | Code::Unavailable), "{e}");
}

#[test]
fn the_first_epoch_goes_without_those_that_do_not_come_if_enough_have() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let timeout = Duration::from_millis(30);
    let options = DriverOptions { min: 1, max: 4, start: 3, timeout, token: "t".into() };
    let driver = Driver::start(listener, options).unwrap();
    let mut alone = seat(&driver, "alone");
    assert_eq!(alone.next_group(&self::options()).unwrap().size(), 1);
}

#[test]
fn who_comes_when_the_job_is_done_does_not_begin_anew() {
    let driver = driver(1, 1, 1);
    let mut first = seat(&driver, "first");
    let group = first.next_group(&options()).unwrap();
    // There is no place for it while the first works.
    let mut waiting = seat(&driver, "waiting");
    let waits = std::thread::spawn(move || waiting.next_group(&options()).err().unwrap());
    while driver.report().joined < 2 {
        std::thread::yield_now();
    }
    drop(group);
    first.done();
    let e = waits.join().unwrap();
    assert_eq!((e.code(), e.message()), (Code::FailedPrecondition, "the job is done"));
    let e = seat(&driver, "late").next_group(&options()).err().unwrap();
    assert_eq!(e.message(), "the job is done");
    let report = driver.report();
    assert_eq!((report.epochs, report.done, report.lost), (1, 1, 0));
    assert_eq!(report.late, ["waiting", "late"]);
}

#[test]
fn a_driver_that_ends_ends_the_wait_of_all() {
    let driver = driver(2, 2, 2);
    let mut waiting = seat(&driver, "one");
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
    let mut seats = ["a", "b"].map(|name| seat(&driver, name));
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
fn a_process_is_told_when_nobody_is_to_answer_it_any_more() {
    let (mut process, driver) = pair();
    // As the thread that listens to it has one.
    let _other = driver.try_clone().unwrap();
    drop(ClosingStream(driver));
    assert_eq!(process.read(&mut [0]).unwrap(), 0);
}

#[test]
fn the_first_word_of_a_connection_is_neither_long_nor_slow() {
    let (mut long, taken) = pair();
    long.write_all(&(1u32 << 20).to_le_bytes()).unwrap();
    long.write_all(&[0; 5000]).unwrap();
    let e = hello(&taken, Duration::from_secs(60)).unwrap_err();
    assert_eq!(e.kind(), std::io::ErrorKind::UnexpectedEof);
    let (mut slow, taken) = pair();
    let dribble = std::thread::spawn(move || {
        slow.write_all(&2000u32.to_le_bytes()).unwrap();
        while slow.write_all(&[0]).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert!(hello(&taken, Duration::from_millis(100)).is_err());
    drop(taken);
    dribble.join().unwrap();
}

/// A process that is given places and never meets anybody. Why it was sent away, and how many places it
/// had; none if the connection ended without a word.
fn one_that_reaches_nobody(driver: &Driver, name: &str) -> Option<(Error, u32)> {
    let stream = TcpStream::connect(driver.address()).unwrap();
    let say = |word: WorkerMessage| write_frame(&mut &stream, &word.encode()).unwrap();
    say(WorkerMessage::Hello { token: "t".into(), name: name.into() });
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
fn ranks_that_can_never_meet_are_sent_away_with_the_reason() {
    let driver = driver(2, 2, 2);
    std::thread::scope(|scope| {
        let both = ["a", "b"].map(|name| {
            let driver = &driver;
            scope.spawn(move || one_that_reaches_nobody(driver, name).unwrap())
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
fn a_newcomer_that_cannot_reach_the_ranks_is_left_out() {
    let driver = driver(1, 2, 1);
    std::thread::scope(|scope| {
        let mut first = seat(&driver, "first");
        drop(first.next_group(&options()).unwrap());
        let driver = &driver;
        let newcomer = scope.spawn(move || one_that_reaches_nobody(driver, "newcomer").unwrap());
        while !first.has_newcomers() {
            std::thread::yield_now();
        }
        // Meets the newcomer in vain first.
        assert_eq!(first.next_group(&options()).unwrap().size(), 1);
        assert_eq!(driver.report().epochs, 3);
        assert!(!first.has_newcomers());
        first.done();
        let (why, places) = newcomer.join().unwrap();
        assert_eq!((why.message(), places), ("the job is done", 1));
    });
}

#[test]
fn a_connection_that_is_watched_asks_whether_the_other_is_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    watch(&stream).unwrap();
    assert!(sockopt::socket_keepalive(&stream).unwrap());
    assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), Duration::from_secs(10));
}
