//! Reads bits of entropy-coded data. A zero byte after 0xFF is stuffing; anything else there is a
//! marker.

pub(super) struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    buffer: u64,
    count: u32,
    /// Whether a marker was reached; zeros follow.
    pub at_marker: bool,
    /// Whether the data ended without a marker.
    pub at_end: bool,
    /// Whether zeros were returned that are not in the data.
    pub starved: bool,
}

impl<'a> Bits<'a> {
    pub fn new(data: &'a [u8]) -> Bits<'a> {
        Bits { data, at: 0, buffer: 0, count: 0, at_marker: false, at_end: false, starved: false }
    }

    fn fill(&mut self) {
        while self.count <= 48 {
            let byte = match (self.at_marker || self.at_end, self.data.get(self.at)) {
                (true, _) => 0,
                (false, None) => {
                    self.at_end = true;
                    0
                }
                (false, Some(0xff)) => {
                    // Any number of 0xFF may pad before a marker.
                    let mut next = self.at + 1;
                    while self.data.get(next) == Some(&0xff) {
                        next += 1;
                    }
                    match self.data.get(next) {
                        Some(0) => {
                            self.at = next + 1;
                            0xff
                        }
                        Some(_) => {
                            self.at_marker = true;
                            0
                        }
                        None => {
                            self.at_end = true;
                            0
                        }
                    }
                }
                (false, Some(&byte)) => {
                    self.at += 1;
                    byte
                }
            };
            if self.at_marker || self.at_end {
                return;
            }
            self.buffer = self.buffer << 8 | u64::from(byte);
            self.count += 8;
        }
    }

    /// The next `n <= 16` bits, without consuming them; zeros after the end.
    pub fn peek(&mut self, n: u32) -> u32 {
        if self.count < n {
            self.fill();
        }
        let mask = (1u64 << n) - 1;
        match self.count >= n {
            true => (self.buffer >> (self.count - n) & mask) as u32,
            false => (self.buffer << (n - self.count) & mask) as u32,
        }
    }

    pub fn skip(&mut self, n: u32) {
        if self.count < n {
            self.starved = true;
            self.count = 0;
        } else {
            self.count -= n;
        }
    }

    pub fn take(&mut self, n: u32) -> u32 {
        if n == 0 {
            return 0;
        }
        let bits = self.peek(n);
        self.skip(n);
        bits
    }

    /// `n` bits as the difference that they encode.
    pub fn signed(&mut self, n: u32) -> i32 {
        if n == 0 {
            return 0;
        }
        let bits = self.take(n) as i32;
        if bits < 1 << (n - 1) { bits - (1 << n) + 1 } else { bits }
    }

    /// Skips to the byte after the next restart marker. Returns whether there is one.
    pub fn restart(&mut self) -> bool {
        (self.buffer, self.count) = (0, 0);
        // Skips bytes before the marker.
        while let Some(rest) = self.data.get(self.at..) {
            match rest {
                [0xff, 0xd0..=0xd7, ..] => {
                    self.at += 2;
                    (self.at_marker, self.starved) = (false, false);
                    return true;
                }
                [0xff, 0 | 0xff, ..] => self.at += 1,
                [0xff, _, ..] => {
                    self.at_marker = true;
                    return false;
                }
                [] | [0xff] => {
                    self.at_end = true;
                    return false;
                }
                [..] => self.at += 1,
            }
        }
        false
    }

    /// Where the marker after this data begins.
    pub fn end(mut self) -> usize {
        while let Some(rest) = self.data.get(self.at..) {
            match rest {
                [0xff, 0 | 0xff | 0xd0..=0xd7, ..] => self.at += 1,
                [0xff, _, ..] | [] | [0xff] => break,
                [..] => self.at += 1,
            }
        }
        self.at
    }
}
