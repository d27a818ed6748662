//! Refuses requests that other sites make through a browser, so that they cannot read these pages.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::net::IpAddr;

/// Refuses all requests but reads, and those that [`refuse_other_site`] refuses.
pub(crate) fn refusal(
    method: &Method,
    headers: &HeaderMap,
    names: &[String],
    checks_host: bool,
) -> Option<(StatusCode, &'static str)> {
    if method != Method::GET && method != Method::HEAD {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "only GET is supported\n"));
    }
    refuse_other_site(headers, names, checks_host)
}

/// Refuses requests that a browser sends for another site. Also refuses requests under a name that
/// is not this host's: a site could make its own name resolve to this address.
///
/// `names` are the names of this host. IP addresses and `localhost` are always accepted.
pub fn refuse_other_site(
    headers: &HeaderMap,
    names: &[String],
    checks_host: bool,
) -> Option<(StatusCode, &'static str)> {
    let text = |name| headers.get(name).and_then(|v: &HeaderValue| v.to_str().ok());
    let host = text(header::HOST);
    if checks_host && !host.is_some_and(|host| is_own(host, names)) {
        return Some((StatusCode::MISDIRECTED_REQUEST, "use the address of this host\n"));
    }
    let of_other_site = match text(header::ORIGIN) {
        None => false,
        Some(origin) => origin.split_once("://").map(|(_, host)| host) != host,
    };
    let is_cross = text(header::HeaderName::from_static("sec-fetch-site"))
        .is_some_and(|site| site == "cross-site" || site == "same-site");
    if of_other_site || is_cross {
        return Some((StatusCode::FORBIDDEN, "requests of other sites are refused\n"));
    }
    None
}

/// Whether a `Host` header names this host.
fn is_own(host: &str, names: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || names.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// The headers of every answer. A page loads nothing from elsewhere, no other site may embed or
/// read it, and no cache keeps it.
pub fn secure_headers() -> [(header::HeaderName, HeaderValue); 6] {
    [
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                 connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            ),
        ),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("same-origin"),
        ),
        (
            header::HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(pairs: &[(&'static str, &'static str)]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        let names = ["node7".to_string()];
        refusal(&Method::GET, &headers, &names, true).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_names_of_this_host_are_answered() {
        for own in ["localhost:1", "127.0.0.1", "[::1]:80", "10.2.3.4:5", "node7:9000", "NODE7"] {
            assert_eq!(refused(&[("host", own)]), None, "{own}");
        }
        for other in ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io:80", ""] {
            assert_eq!(refused(&[("host", other)]), Some(421), "{other}");
        }
        assert_eq!(refused(&[]), Some(421));
    }

    #[test]
    fn other_sites_are_refused() {
        let host = ("host", "localhost:9000");
        assert_eq!(refused(&[host, ("origin", "http://localhost:9000")]), None);
        assert_eq!(refused(&[host, ("sec-fetch-site", "same-origin")]), None);
        for other in ["http://evil.example", "null", "http://localhost:9001"] {
            assert_eq!(refused(&[host, ("origin", other)]), Some(403), "{other}");
        }
        assert_eq!(refused(&[host, ("sec-fetch-site", "cross-site")]), Some(403));
        let post = refusal(&Method::POST, &HeaderMap::new(), &[], false);
        assert_eq!(post.unwrap().0, StatusCode::METHOD_NOT_ALLOWED);
    }
}
