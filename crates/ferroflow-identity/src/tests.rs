//! Connections between processes with all kinds of credentials.

use crate::{
    Credentials, ExpectedPeer, JobAuthority, JobToken, PeerIdentity, SecureStream, Trust,
    take_secret, task_role,
};
use ferroflow_core::{Code, Result};
use ferroflow_testing::{child, this_test};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A time limit far above the time of any step here.
fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| s.to_string()).collect()
}

fn trusting(authority: &JobAuthority, roles: &[&str], hosts: &[&str]) -> Trust {
    Trust::with(authority.credentials(&strings(roles), &strings(hosts), 1).unwrap())
}

/// Both ends of a new connection: that of the client, then that of the server.
fn connect_with(
    client: (&Trust, &JobToken),
    server: (&Trust, &JobToken),
    role: Option<&str>,
) -> (Result<SecureStream>, Result<SecureStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tcp = TcpStream::connect(address).unwrap();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let (tcp, _) = listener.accept().unwrap();
            SecureStream::accept(tcp, server.0, server.1, deadline())
        });
        let expected = ExpectedPeer { address: "127.0.0.1", role };
        let connected = SecureStream::connect(tcp, client.0, client.1, expected, deadline());
        (connected, accepting.join().unwrap())
    })
}

fn connect(client: &Trust, server: &Trust) -> (Result<SecureStream>, Result<SecureStream>) {
    let token = JobToken::default();
    connect_with((client, &token), (server, &token), None)
}

fn says(stream: &SecureStream, bytes: &[u8]) {
    let mut stream = stream;
    stream.write_all(bytes).unwrap();
}

fn hears(stream: &SecureStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut stream = stream;
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn both_ends_know_each_other_and_exchange_bytes() {
    let authority = JobAuthority::new().unwrap();
    let client = trusting(&authority, &["worker-0"], &["127.0.0.1"]);
    let server = trusting(&authority, &["ps-0"], &["127.0.0.1", "localhost"]);
    let (near, far) = connect(&client, &server);
    let (near, far) = (near.unwrap(), far.unwrap());
    assert!(far.may_be("worker-0") && !far.may_be("ps-0"));
    assert!(near.may_be("ps-0") && !near.may_be("worker-0"));
    let long: Vec<u8> = (0..5_000_000u32).map(|i| (i / 7) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| says(&near, &long));
        scope.spawn(|| says(&far, &long[1..]));
        scope.spawn(|| assert!(hears(&near, long.len() - 1) == long[1..]));
        assert!(hears(&far, long.len()) == long);
    });
}

#[test]
fn a_certificate_of_another_ca_is_refused_at_either_end() {
    let (ours, theirs) = (JobAuthority::new().unwrap(), JobAuthority::new().unwrap());
    let ours = trusting(&ours, &[], &["127.0.0.1"]);
    let theirs = trusting(&theirs, &[], &["127.0.0.1"]);
    for (client, server) in [(&ours, &theirs), (&theirs, &ours)] {
        let (near, far) = connect(client, server);
        assert!(near.is_err() && far.is_err());
    }
}

#[test]
fn a_peer_without_tls_is_refused() {
    let authority = JobAuthority::new().unwrap();
    let server = trusting(&authority, &[], &["127.0.0.1"]);
    let (near, far) = connect(&Trust::default(), &server);
    assert!(near.is_err());
    assert_eq!(far.err().unwrap().code(), Code::PermissionDenied);
    // With the roles exchanged, the client refuses to speak without TLS.
    let (near, far) = connect(&server, &Trust::default());
    assert!(near.is_err() && far.is_err());
}

#[test]
fn a_server_must_have_the_expected_name_or_role() {
    let authority = JobAuthority::new().unwrap();
    let client = trusting(&authority, &[], &[]);
    let server = trusting(&authority, &["ps-0"], &["10.9.9.9", "other.example"]);
    let token = JobToken::default();
    let role = task_role("ps", 0);
    let (near, _) = connect_with((&client, &token), (&server, &token), Some(&role));
    near.unwrap();
    for wrong in [None, Some("ps-1")] {
        let (near, _) = connect_with((&client, &token), (&server, &token), wrong);
        let e = near.err().unwrap();
        assert_eq!(e.code(), Code::PermissionDenied);
        assert!(e.message().contains("other.example") && e.message().contains("127.0.0.1"), "{e}");
    }
}

#[test]
fn a_certificate_is_for_its_roles_or_without_any_for_the_tasks_of_its_hosts() {
    let authority = JobAuthority::new().unwrap();
    let server = trusting(&authority, &["ps-0"], &["127.0.0.1"]);
    for (roles, hosts, may) in [
        (&["ps-1"][..], &["127.0.0.1"][..], true),
        (&["job"], &[], true),
        (&["ps-0", "client"], &["127.0.0.1"], false),
        (&[], &["127.0.0.1"], true),
        (&[], &["10.9.9.9", "other.example"], false),
    ] {
        let (_, far) = connect(&trusting(&authority, roles, hosts), &server);
        assert_eq!(far.unwrap().may_be("PS-1"), may, "{roles:?} {hosts:?}");
    }
    let named = trusting(&authority, &[], &["other.example"]);
    let (_, far) = connect(&named, &server);
    let identity = far.unwrap().identity().clone();
    assert!(identity.may_be("ps-1", "other.example:2222"));
    assert!(!identity.may_be("ps-1", "another.example:2222"));
    // The same holder with a renewed certificate.
    let renewed = trusting(&authority, &[], &["other.example"]);
    let (_, far) = connect(&renewed, &server);
    assert_eq!(*far.unwrap().identity(), identity);
    assert!(PeerIdentity::User(7).may_be("ps-1", "127.0.0.1:1"));
}

#[test]
fn a_server_for_the_whole_job_may_be_every_expected_task() {
    let authority = JobAuthority::new().unwrap();
    let (client, token) = (trusting(&authority, &["ps-1"], &[]), JobToken::default());
    let server = trusting(&authority, &["job"], &["other.example"]);
    let (near, _) = connect_with((&client, &token), (&server, &token), Some("ps-0"));
    near.unwrap();
    let (near, _) = connect_with((&client, &token), (&server, &token), None);
    assert_eq!(near.err().unwrap().code(), Code::PermissionDenied);
}

#[test]
fn a_certificate_that_has_expired_is_refused() {
    let authority = JobAuthority::new().unwrap();
    let expired = Trust::with(authority.credentials(&[], &strings(&["127.0.0.1"]), 0).unwrap());
    let valid = trusting(&authority, &[], &["127.0.0.1"]);
    for (client, server) in [(&expired, &valid), (&valid, &expired)] {
        // A certificate is valid until the end of its last second.
        let until = deadline();
        while let (Ok(_), Ok(_)) = connect(client, server) {
            assert!(Instant::now() < until, "the certificate is still valid");
        }
    }
}

#[test]
fn peers_with_another_token_are_refused_with_and_without_tls() {
    let authority = JobAuthority::new().unwrap();
    let tls = trusting(&authority, &[], &["127.0.0.1"]);
    let (right, wrong) = (JobToken::random().unwrap(), JobToken::random().unwrap());
    for trust in [&tls, &Trust::default()] {
        for (near, far) in [(&right, &wrong), (&wrong, &right), (&right, &JobToken::default())] {
            let (near, far) = connect_with((trust, near), (trust, far), None);
            let e = near.err().unwrap();
            assert_eq!(e.message(), "the token is not that of this job");
            assert_eq!(e.code(), Code::PermissionDenied);
            assert!(far.is_err());
        }
        let (near, far) = connect_with((trust, &right), (trust, &right), None);
        assert!(near.is_ok() && far.is_ok());
    }
}

/// The process at the other end sees only random bytes.
#[test]
fn a_token_is_not_sent_to_a_process_that_does_not_know_it() {
    let token = JobToken::new("a secret that must not be sent");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut thief, _) = listener.accept().unwrap();
    let stealing = std::thread::spawn(move || {
        let mut all = vec![0; 40];
        thief.read_exact(&mut all).unwrap();
        // It cannot compute a proof, so it sends a false one.
        thief.write_all(&[7; 64]).unwrap();
        thief.read_to_end(&mut all).unwrap();
        all
    });
    let expected = ExpectedPeer { address: "127.0.0.1", role: None };
    let refused = SecureStream::connect(tcp, &Trust::default(), &token, expected, deadline());
    assert_eq!(refused.err().unwrap().code(), Code::PermissionDenied);
    let heard = stealing.join().unwrap();
    assert_eq!(heard.len(), 40, "a magic number and a random number, no proof");
    assert!(!String::from_utf8_lossy(&heard).contains("secret"));
}

#[test]
fn a_silent_peer_does_not_hold_up_a_server() {
    let authority = JobAuthority::new().unwrap();
    for trust in [trusting(&authority, &[], &[]), Trust::default()] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _silent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (tcp, _) = listener.accept().unwrap();
        let soon = Instant::now() + Duration::from_millis(20);
        assert!(SecureStream::accept(tcp, &trust, &JobToken::default(), soon).is_err());
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("ferroflow-identity-{name}-{}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_are_read_again_when_they_change() {
    let folder = Folder::new("reload");
    let ours = folder.0.join("task");
    let first = JobAuthority::in_folder(&folder.0.join("first")).unwrap();
    let second = JobAuthority::in_folder(&folder.0.join("second")).unwrap();
    let hosts = strings(&["127.0.0.1"]);
    first.write(&ours, &[], &hosts, 1).unwrap();
    let server = Trust::with(Credentials::from_folder(&ours).unwrap());
    let old = trusting(&first, &[], &["127.0.0.1"]);
    let new = trusting(&second, &[], &["127.0.0.1"]);
    connect(&old, &server).0.unwrap();
    // A file that is cut off changes nothing.
    let certificate = std::fs::read_to_string(ours.join("tls.crt")).unwrap();
    std::fs::write(ours.join("tls.crt"), &certificate[..40]).unwrap();
    let seen = Instant::now() + Duration::from_millis(1100);
    while Instant::now() < seen {
        connect(&old, &server).0.unwrap();
    }
    second.write(&ours, &[], &hosts, 1).unwrap();
    let until = deadline();
    while connect(&new, &server).0.is_err() {
        assert!(Instant::now() < until, "the new certificate is not in use");
    }
    assert!(connect(&old, &server).0.is_err(), "the old CA is not trusted any more");
}

#[test]
fn a_ca_in_a_folder_is_used_again_and_its_secrets_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("ca");
    let first = JobAuthority::in_folder(&folder.0).unwrap();
    let again = JobAuthority::in_folder(&folder.0).unwrap();
    assert_eq!(first.token().reveal(), again.token().reveal());
    let (a, b) = (trusting(&first, &[], &["127.0.0.1"]), trusting(&again, &[], &["127.0.0.1"]));
    connect(&a, &b).0.unwrap();
    again.write(&folder.0.join("ps-0"), &strings(&["ps-0"]), &[], 1).unwrap();
    for secret in ["ca.key", "token", "ps-0/tls.key", "ps-0/token"] {
        let mode = std::fs::metadata(folder.0.join(secret)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{secret} can be read by others");
    }
}

#[test]
fn credentials_can_be_given_as_text() {
    let authority = JobAuthority::new().unwrap();
    let text = authority.inline(&strings(&["rank-0"]), &strings(&["127.0.0.1"]), 1).unwrap();
    // A terminal passes on at most 4095 bytes of a line.
    assert!(text.len() < 4000 && !text.contains(char::is_whitespace), "{}", text.len());
    let credentials = Credentials::parse(&text).unwrap();
    assert_eq!(credentials.token().reveal(), authority.token().reveal());
    let trust = Trust::with(credentials);
    let (near, far) = connect(&trust, &trusting(&authority, &[], &["127.0.0.1"]));
    near.unwrap();
    assert!(matches!(far.unwrap().identity(), PeerIdentity::Certificate { .. }));
    for wrong in ["data:", "data:%%%", "data:AAAA", "/no/such/folder"] {
        assert!(Credentials::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_secret_is_removed_from_the_environment_of_the_process() {
    const SECRET: &str = "A_SECRET_OF_THIS_TEST";
    if child::role().as_deref() == Some("secret") {
        assert_eq!(take_secret(SECRET).unwrap(), "opensesame");
        assert_eq!(take_secret(SECRET).unwrap(), "opensesame", "it is remembered");
        let seen = std::fs::read("/proc/self/environ").unwrap();
        let seen = String::from_utf8_lossy(&seen).into_owned();
        assert!(seen.contains(SECRET) && !seen.contains("opensesame"), "{seen}");
        assert!(std::env::var("PATH").is_ok(), "the other variables stay");
        return;
    }
    let mut command = child::command(this_test!(), "secret");
    let out = command.env(SECRET, "opensesame").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
}
