//! The page to try a model in the browser: three files, which load nothing from other servers.

use crate::http::HttpAnswer;
use bytes::Bytes;
use http::StatusCode;

static FILES: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/ui/page.js", "text/javascript; charset=utf-8", include_str!("page/page.js")),
    ("/ui/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
];

/// The file at a path.
pub(super) fn file(path: &str) -> Option<HttpAnswer> {
    let &(_, content_type, text) = FILES.iter().find(|(at, ..)| *at == path)?;
    let body = Bytes::from_static(text.as_bytes());
    Some(HttpAnswer { status: StatusCode::OK, content_type, body, is_page: true })
}
