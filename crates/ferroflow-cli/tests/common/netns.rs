//! Network namespaces as hosts, joined by a cable that can be pulled.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

fn try_ip(words: &[&str]) -> Result<(), String> {
    let out = Command::new("ip").args(words).output();
    match out.map_err(|e| format!("no ip command: {e}"))? {
        out if out.status.success() => Ok(()),
        out => {
            let why = String::from_utf8_lossy(&out.stderr).trim().to_string();
            Err(format!("ip {}: {why}", words.join(" ")))
        }
    }
}

fn ip(words: &[&str]) {
    try_ip(words).unwrap();
}

fn tc(words: &[&str]) {
    let out = Command::new("tc").args(words).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "tc {}: {errors}", words.join(" "));
}

/// Why links cannot be slowed down here.
pub fn no_traffic_shaping() -> Option<String> {
    let name = format!("ffq{}", std::process::id());
    let device = ["link", "add", &name, "type", "veth", "peer", "name", &format!("{name}p")];
    if let Err(why) = try_ip(&device) {
        return Some(why);
    }
    let words = "root tbf rate 8mbit burst 64kb latency 200ms".split(' ');
    let out = Command::new("tc").args(["qdisc", "add", "dev", &name]).args(words).output();
    let _ = try_ip(&["link", "del", &name]);
    match out {
        Ok(out) if out.status.success() => None,
        Ok(out) => Some(format!("tc: {}", String::from_utf8_lossy(&out.stderr).trim())),
        Err(e) => Some(format!("no tc command: {e}")),
    }
}

/// A namespace whose name is its address.
struct Namespace(String);

impl Namespace {
    fn new(address: String) -> Namespace {
        ip(&["netns", "add", &address]);
        ip(&["-n", &address, "link", "set", "lo", "up"]);
        Namespace(address)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = try_ip(&["netns", "del", &self.0]);
    }
}

/// Two ends of a cable, each with an address, the far one in a namespace of that name.
pub struct Cable {
    near: Option<Namespace>,
    far: Namespace,
    near_address: String,
    near_device: String,
    device: String,
    /// The network of both addresses.
    network: String,
}

impl Cable {
    /// From this host to a namespace.
    pub fn from_here() -> Cable {
        Cable::new(false)
    }

    /// Between two namespaces.
    pub fn between_two() -> Cable {
        Cable::new(true)
    }

    fn new(is_near_apart: bool) -> Cable {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Each cable of each test process gets 4 addresses of its own.
        let net = (pid.wrapping_mul(64) + number) & 0x1f_ffff;
        let address = |last: u32| {
            format!("10.{}.{}.{}", 128 + (net >> 14), (net >> 6) & 255, (net & 63) * 4 + last)
        };
        let (near_address, far) = (address(1), Namespace::new(address(2)));
        let near = is_near_apart.then(|| Namespace::new(near_address.clone()));
        let (device, other) = (format!("ff{net:x}f"), format!("ff{net:x}n"));
        let far_name = far.0.as_str();
        ip(&["link", "add", &other, "type", "veth", "peer", "name", &device, "netns", far_name]);
        if let Some(near) = &near {
            ip(&["link", "set", &other, "netns", &near.0]);
        }
        for (namespace, address, device) in [
            (near.as_ref().map(|n| n.0.as_str()), &near_address, &other),
            (Some(far_name), &far.0, &device),
        ] {
            let at = format!("{address}/30");
            let inside: Vec<&str> = namespace.into_iter().flat_map(|n| ["-n", n]).collect();
            ip(&[&inside[..], &["addr", "add", &at, "dev", device]].concat());
            ip(&[&inside[..], &["link", "set", device, "up"]].concat());
        }
        let network = format!("{}/30", address(0));
        Cable { near, far, near_address, device, near_device: other, network }
    }

    pub fn near(&self) -> &str {
        &self.near_address
    }

    /// The address of the far end, and the name of its namespace.
    pub fn far(&self) -> &str {
        &self.far.0
    }

    /// Lets the far end reach the near end of another cable.
    pub fn reaches(&self, other: &Cable) {
        let far = self.far.0.as_str();
        ip(&["-n", far, "route", "add", other.near(), "dev", &self.device, "src", far]);
    }

    /// Limits both directions to `rate`, such as `8mbit`.
    pub fn slow_down(&self, rate: &str) {
        let shape = ["root", "tbf", "rate", rate, "burst", "64kb", "latency", "200ms"];
        let near = &self.near_device;
        let far = self.far.0.as_str();
        tc(&[&["qdisc", "add", "dev", near], &shape[..]].concat());
        tc(&[&["-n", far, "qdisc", "add", "dev", &self.device], &shape[..]].concat());
    }

    /// Drops packets to the far end that are longer than 1500 bytes, without an error at either
    /// end. The near end believes that both accept longer packets.
    pub fn lose_long_packets(&self) {
        let inside = self.near.as_ref().map_or(vec![], |n| vec!["-n", n.0.as_str()]);
        let change = ["link", "set", &self.near_device, "mtu", "9000", "gso_max_segs", "1"];
        ip(&[&inside[..], &change].concat());
        let far = ["-n", &self.far.0, "route", "change", &self.network, "dev", &self.device];
        ip(&[&far[..], &["advmss", "8960"]].concat());
    }

    /// Gives both ends, which are namespaces, another interface with the same address, like the
    /// bridges of containers. The address leads to another host from each of them.
    pub fn add_same_address(&self, name: &str, address: &str) {
        for end in [self.near(), self.far()] {
            ip(&["-n", end, "link", "add", name, "type", "bridge"]);
            ip(&["-n", end, "addr", "add", address, "dev", name]);
            ip(&["-n", end, "link", "set", name, "up"]);
        }
    }

    /// Drops all packets, without an error at either end.
    pub fn pull(&self) {
        ip(&["-n", &self.far.0, "link", "set", &self.device, "down"]);
    }

    pub fn plug_in(&self) {
        ip(&["-n", &self.far.0, "link", "set", &self.device, "up"]);
    }
}

/// A route between the far ends of two cables that bypasses this host. It can be closed without an
/// error at either end.
pub struct Bypass {
    ends: [String; 2],
}

/// The name of its device at both ends.
const BYPASS: &str = "bypass";

impl Bypass {
    pub fn between(one: &Cable, other: &Cable) -> Bypass {
        let (a, b) = (one.far(), other.far());
        let peer = ["type", "veth", "peer", "name", BYPASS, "netns", b];
        ip(&[&["link", "add", BYPASS, "netns", a], &peer[..]].concat());
        for (here, there) in [(a, b), (b, a)] {
            ip(&["-n", here, "link", "set", BYPASS, "up"]);
            ip(&["-n", here, "route", "add", there, "dev", BYPASS, "src", here]);
        }
        // Both ends reach this host at the near end of the first cable.
        ip(&["-n", b, "route", "add", one.near(), "dev", &other.device, "src", b]);
        Bypass { ends: [a.into(), b.into()] }
    }

    /// Drops all packets: they go to an address that does not exist.
    pub fn close(&self) {
        let unknown = ["lladdr", "02:00:00:00:00:01", "nud", "permanent"];
        self.each(|here, there| {
            ip(&[&["-n", here, "neigh", "replace", there, "dev", BYPASS], &unknown[..]].concat());
        });
    }

    pub fn open(&self) {
        self.each(|here, there| ip(&["-n", here, "neigh", "del", there, "dev", BYPASS]));
    }

    fn each(&self, change: impl Fn(&str, &str)) {
        let [a, b] = &self.ends;
        change(a, b);
        change(b, a);
    }
}
