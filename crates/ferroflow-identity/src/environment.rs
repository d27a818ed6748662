//! Secrets in environment variables: read once, then removed from the memory in which other
//! processes of this user could read them (`/proc/PID/environ`).

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};

/// The values that were read.
static TAKEN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// The value of a secret variable. The first call overwrites it in this process's environment;
/// later calls return the same value. `None` if it is absent or empty.
pub fn take_secret(name: &str) -> Option<String> {
    let mut taken = TAKEN.lock();
    if let Some(value) = taken.get(name) {
        return Some(value.clone());
    }
    let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
    // Without /proc other processes cannot read the environment.
    if let Err(e) = overwrite(name, value.len()) {
        tracing::debug!("{name} stays in the environment of this process: {e}");
    }
    taken.insert(name.to_string(), value.clone());
    Some(value)
}

/// Overwrites the value of a variable in the memory that the kernel shows as the environment. The
/// strings keep their length, so that a thread that reads the environment now is safe.
fn overwrite(name: &str, len: usize) -> std::io::Result<()> {
    let environment = std::fs::read("/proc/self/environ")?;
    let entry = format!("{name}=");
    let mut at = 0;
    let place = environment.split_inclusive(|byte| *byte == 0).find_map(|variable| {
        let place = at + entry.len();
        at += variable.len();
        variable.starts_with(entry.as_bytes()).then_some(place)
    });
    let Some(place) = place else { return Ok(()) };
    let mut memory = std::fs::File::options().read(true).write(true).open("/proc/self/mem")?;
    memory.seek(SeekFrom::Start(start_of_environment()? + place as u64))?;
    // Only if the memory holds this value: the environment may have moved.
    let mut found = vec![0; len];
    memory.read_exact(&mut found)?;
    if environment.get(place..place + len) == Some(&found[..]) {
        memory.seek(SeekFrom::Current(-(len as i64)))?;
        memory.write_all(&vec![b'*'; len])?;
    }
    Ok(())
}

/// The address of the environment when the process started: field 50 of its status.
fn start_of_environment() -> std::io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program, which may contain spaces, is in parentheses.
    let mut fields = status.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let start = fields.nth(47).and_then(|field| field.parse().ok());
    start.filter(|start| *start != 0).ok_or_else(|| std::io::ErrorKind::NotFound.into())
}
