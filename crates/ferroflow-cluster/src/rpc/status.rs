//! The status of a failed call, and its form in HTTP/2 trailers.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::fmt;

/// The codes of gRPC, which are also TensorFlow's.
pub mod code {
    /// Success.
    pub const OK: i32 = 0;
    /// The caller cancelled the call.
    pub const CANCELLED: i32 = 1;
    /// An error of unknown kind.
    pub const UNKNOWN: i32 = 2;
    /// The request is invalid.
    pub const INVALID_ARGUMENT: i32 = 3;
    /// The deadline passed.
    pub const DEADLINE_EXCEEDED: i32 = 4;
    /// The named object does not exist.
    pub const NOT_FOUND: i32 = 5;
    /// The object exists already.
    pub const ALREADY_EXISTS: i32 = 6;
    /// The caller may not do this.
    pub const PERMISSION_DENIED: i32 = 7;
    /// Memory or a quota is exhausted.
    pub const RESOURCE_EXHAUSTED: i32 = 8;
    /// The state does not allow this.
    pub const FAILED_PRECONDITION: i32 = 9;
    /// The operation was aborted; it can be tried again.
    pub const ABORTED: i32 = 10;
    /// A value is beyond the valid range.
    pub const OUT_OF_RANGE: i32 = 11;
    /// The method or feature is not supported.
    pub const UNIMPLEMENTED: i32 = 12;
    /// A bug.
    pub const INTERNAL: i32 = 13;
    /// The peer cannot be reached.
    pub const UNAVAILABLE: i32 = 14;
    /// Data is lost or damaged.
    pub const DATA_LOSS: i32 = 15;
    /// The caller is not authenticated.
    pub const UNAUTHENTICATED: i32 = 16;
}

/// The status of a failed call. This module never makes one with [`code::OK`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcStatus {
    /// One of [`code`], or another number from a peer.
    pub code: i32,
    /// A description.
    pub message: String,
    /// The undecoded content of `grpc-status-details-bin`.
    pub details: Option<Bytes>,
}

impl RpcStatus {
    /// A status without details.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        RpcStatus { code, message: message.into(), details: None }
    }

    /// Adds details.
    pub fn with_details(mut self, details: Bytes) -> Self {
        self.details = Some(details);
        self
    }

    /// The answer to an unknown path.
    pub fn unknown_method(path: &str) -> Self {
        RpcStatus::new(code::UNIMPLEMENTED, format!("unknown method {path}"))
    }

    /// Writes the trailers that carry this status.
    pub(super) fn put(&self, headers: &mut HeaderMap) {
        // A failure with code OK would look like an answer without a message.
        let code = if self.code == code::OK { code::INTERNAL } else { self.code };
        headers.insert(GRPC_STATUS, HeaderValue::from(code));
        let message = percent_encode(&cut(&self.message));
        let details = self.details.as_ref().map(|d| BASE64.encode(d)).unwrap_or_default();
        // Leave out large details: a peer that refuses the trailers for their size would show no
        // error.
        if !details.is_empty() && message.len() + details.len() <= MOST_METADATA {
            insert(headers, GRPC_DETAILS, details);
        }
        if !message.is_empty() {
            insert(headers, GRPC_MESSAGE, message);
        }
    }

    /// Reads the trailers of a call. `None` if they hold no status.
    pub(super) fn take(headers: &HeaderMap) -> Option<Result<(), RpcStatus>> {
        let text = headers.get(GRPC_STATUS)?.to_str().unwrap_or_default();
        let code = text.parse().unwrap_or(code::UNKNOWN);
        if code == code::OK {
            return Some(Ok(()));
        }
        let message =
            headers.get(GRPC_MESSAGE).map(|m| percent_decode(m.as_bytes())).unwrap_or_default();
        let details = headers
            .get(GRPC_DETAILS)
            .and_then(|d| BASE64.decode(d.as_bytes()).ok())
            .map(Bytes::from);
        Some(Err(RpcStatus { code, message, details }))
    }

    /// gRPC's mapping of HTTP statuses, for an answer that is not gRPC.
    pub(super) fn of_http(status: StatusCode) -> Self {
        let code = match status.as_u16() {
            400 => code::INTERNAL,
            401 => code::UNAUTHENTICATED,
            403 => code::PERMISSION_DENIED,
            404 => code::UNIMPLEMENTED,
            429 | 502 | 503 | 504 => code::UNAVAILABLE,
            _ => code::UNKNOWN,
        };
        RpcStatus::new(code, format!("the peer answered with HTTP status {status} instead of gRPC"))
    }
}

/// The trailers of a successful call.
pub(super) fn ok_trailers() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(1);
    headers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    headers
}

impl fmt::Display for RpcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = usize::try_from(self.code).ok().and_then(|c| NAMES.get(c));
        match name {
            Some(name) => write!(f, "{name}: {}", self.message),
            None => write!(f, "code {}: {}", self.code, self.message),
        }
    }
}

impl std::error::Error for RpcStatus {}

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The length at which TensorFlow truncates a message, and the text that it appends.
const MOST_MESSAGE: usize = 3072;
const CUT_MARK: &str = " ... [truncated]";

/// grpc-core refuses trailers beyond 8 KiB. This leaves room for the names.
const MOST_METADATA: usize = 7 << 10;

/// gRPC sends no padding and accepts both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn insert(headers: &mut HeaderMap, name: HeaderName, ascii: String) {
    if let Ok(value) = HeaderValue::try_from(ascii) {
        headers.insert(name, value);
    }
}

/// Truncates at [`MOST_MESSAGE`] bytes, or earlier if escapes make the header too long.
fn cut(message: &str) -> std::borrow::Cow<'_, str> {
    let mut escaped = 0;
    for (at, c) in message.char_indices() {
        escaped += if c.is_ascii() && !must_escape(c as u8) { 1 } else { 3 * c.len_utf8() };
        if at + c.len_utf8() > MOST_MESSAGE || escaped > MOST_METADATA - CUT_MARK.len() {
            return format!("{}{CUT_MARK}", &message[..at]).into();
        }
    }
    message.into()
}

fn must_escape(byte: u8) -> bool {
    !(b' '..=b'~').contains(&byte) || byte == b'%'
}

fn percent_encode(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        if must_escape(byte) {
            encoded.push('%');
            encoded.push(char::from(HEX[usize::from(byte >> 4)]));
            encoded.push(char::from(HEX[usize::from(byte & 15)]));
        } else {
            encoded.push(char::from(byte));
        }
    }
    encoded
}

/// Keeps text that is not a valid escape: a garbled message is better than none.
fn percent_decode(mut text: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    while let Some((&byte, rest)) = text.split_first() {
        let escape = (byte == b'%').then(|| rest.split_at_checked(2)).flatten();
        let value =
            escape.and_then(|(hex, _)| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (value, escape) {
            (Some(value), Some((_, after))) => {
                decoded.push(value);
                text = after;
            }
            _ => {
                decoded.push(byte);
                text = rest;
            }
        }
    }
    String::from_utf8(decoded)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through_trailers(status: &RpcStatus) -> RpcStatus {
        let mut headers = HeaderMap::new();
        status.put(&mut headers);
        RpcStatus::take(&headers).expect("a status").expect_err("a failure")
    }

    #[test]
    fn a_status_survives_its_trailers() {
        for message in ["", "plain", "100% of\n\t [[{{node größe}}]] 漢字 ~\u{7f}"] {
            let status = RpcStatus::new(code::ABORTED, message);
            assert_eq!(through_trailers(&status), status);
        }
        let status = RpcStatus::new(99, "x").with_details(Bytes::from_static(&[0, 255, 1, 2]));
        assert_eq!(through_trailers(&status), status);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let message = format!("{}é{}", "x".repeat(3071), "y".repeat(10_000));
        let read = through_trailers(&RpcStatus::new(code::INTERNAL, message)).message;
        assert_eq!(read, format!("{}{CUT_MARK}", "x".repeat(3071)));
        let exact = "x".repeat(3072);
        assert_eq!(through_trailers(&RpcStatus::new(code::INTERNAL, exact.clone())).message, exact);
    }

    #[test]
    fn no_status_exceeds_the_limit_of_grpc_core() {
        let status = RpcStatus::new(code::INTERNAL, "漢".repeat(2000))
            .with_details(Bytes::from(vec![1; 6000]));
        let mut headers = HeaderMap::new();
        status.put(&mut headers);
        assert!(headers.values().map(HeaderValue::len).sum::<usize>() <= MOST_METADATA + 2);
        assert!(through_trailers(&status).message.ends_with(CUT_MARK));
    }

    #[test]
    fn broken_escapes_are_kept() {
        assert_eq!(percent_decode(b"a%zz%4"), "a%zz%4");
        assert_eq!(percent_decode(b"%FF"), "\u{fffd}");
    }

    #[test]
    fn padded_and_unpadded_details_are_read() {
        for text in ["AAE", "AAE="] {
            let mut headers = HeaderMap::new();
            headers.insert(GRPC_STATUS, HeaderValue::from_static("3"));
            headers.insert(GRPC_DETAILS, HeaderValue::from_static(text));
            let status = RpcStatus::take(&headers).expect("a status").expect_err("a failure");
            assert_eq!(status.details.as_deref(), Some(&[0u8, 1][..]));
        }
    }

    #[test]
    fn a_status_that_is_no_number_is_unknown() {
        let mut headers = HeaderMap::new();
        assert_eq!(RpcStatus::take(&headers), None);
        headers.insert(GRPC_STATUS, HeaderValue::from_static("bad"));
        assert_eq!(RpcStatus::take(&headers), Some(Err(RpcStatus::new(code::UNKNOWN, ""))));
    }
}
