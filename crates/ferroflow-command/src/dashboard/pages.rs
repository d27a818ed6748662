//! The pages of a dashboard.

use super::board::Board;
use ferroflow_observe::{EventSender, HttpAnswer, HttpClient, HttpRequest, HttpService, TaskPages};
use std::sync::Arc;

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// Serves a board: the page, its state as JSON, and changes as server-sent events.
pub struct BoardPages {
    board: Arc<Board>,
    /// The pages of a task on the same port.
    task: Option<TaskPages>,
}

impl BoardPages {
    pub fn new(board: Arc<Board>) -> BoardPages {
        BoardPages { board, task: None }
    }

    /// Also serves the pages of a task.
    pub fn beside(self, task: TaskPages) -> BoardPages {
        BoardPages { task: Some(task), ..self }
    }

    /// Fetches a page of a task, which the browser cannot reach, and sends it as one event.
    fn fetch(&self, path: &'static str, event: &'static str, task: Option<String>) -> HttpAnswer {
        let (browser, answer) = HttpAnswer::events();
        let address = self.board.address_of(task.as_deref());
        let board = self.board.clone();
        tokio::spawn(async move {
            let value = match address {
                Some(address) => HttpClient::new(address, board.trust().clone()).json(path).await,
                None => Ok(serde_json::Value::Null),
            };
            send(&browser, event, &value.unwrap_or(serde_json::Value::Null));
        });
        answer
    }
}

/// The text that a browser has encoded for a query.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, hex.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = tail;
            }
            (other, _) => {
                bytes.push(*other);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn send(browser: &EventSender, event: &str, value: &serde_json::Value) {
    browser.send(event, &value.to_string());
}

impl HttpService for BoardPages {
    fn get(&self, request: &HttpRequest<'_>) -> HttpAnswer {
        match request.path {
            "/" => HttpAnswer::body("text/html; charset=utf-8", PAGE),
            "/page.js" => HttpAnswer::body("text/javascript; charset=utf-8", SCRIPT),
            "/page.css" => HttpAnswer::body("text/css; charset=utf-8", STYLE),
            "/api/state" => HttpAnswer::json(&self.board.to_json()),
            "/api/history" => HttpAnswer::json(&self.board.history()),
            "/api/events" => {
                let (browser, answer) = HttpAnswer::events();
                match self.board.subscribe(browser) {
                    true => answer,
                    false => HttpAnswer::unavailable("too many browsers watch this job\n"),
                }
            }
            "/api/job/graph" => self.fetch("/api/graph", "graph", None),
            "/api/job/logs" => {
                let task = decoded(request.query.strip_prefix("task=").unwrap_or_default());
                match self.board.output_of(&task) {
                    Some(lines) => {
                        let (browser, answer) = HttpAnswer::events();
                        send(&browser, "logs", &lines);
                        answer
                    }
                    None => self.fetch("/api/logs", "logs", Some(task)),
                }
            }
            _ => match &self.task {
                Some(task) => task.get(request),
                None if matches!(request.path, "/healthz" | "/livez" | "/readyz") => {
                    HttpAnswer::text("ok\n")
                }
                None => HttpAnswer::not_found(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        assert_eq!(decoded("worker%200"), "worker 0");
        assert_eq!(decoded("a+b%C3%A9%3Cx%3E"), "a b\u{e9}<x>");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%f"), "%zz%f");
    }
}
