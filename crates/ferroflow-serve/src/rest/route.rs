//! The paths of TensorFlow Serving's REST interface.

use crate::wire::{ModelSpec, VersionChoice};

/// The model and the operation of a path.
#[derive(Debug, PartialEq)]
pub(super) struct Route {
    pub spec: ModelSpec,
    pub verb: Verb,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verb {
    Status,
    Metadata,
    Predict,
    Classify,
    Regress,
}

/// Parses `/v1/models/NAME[/versions/N|/labels/L][/metadata|:VERB]`.
pub(super) fn parse(path: &str) -> Option<Route> {
    let prefix = "/v1/models/";
    let start = path.get(..prefix.len())?;
    if !start.eq_ignore_ascii_case(prefix) {
        return None;
    }
    let rest = &path[prefix.len()..];
    let (rest, verb) = match rest.split_once(':') {
        Some((rest, verb)) => (rest, called(verb)?),
        None => match rest.strip_suffix("/metadata") {
            Some(rest) => (rest, Verb::Metadata),
            None => (rest, Verb::Status),
        },
    };
    let mut parts = rest.split('/');
    let name = decoded(parts.next()?)?;
    let version = match (parts.next(), parts.next()) {
        (None, None) => None,
        (Some(kind), Some(value)) if kind.eq_ignore_ascii_case("versions") => {
            Some(VersionChoice::Number(value.parse().ok().filter(|n| *n >= 0)?))
        }
        (Some(kind), Some(value)) if kind.eq_ignore_ascii_case("labels") => {
            Some(VersionChoice::Label(decoded(value)?))
        }
        _ => return None,
    };
    if name.is_empty() || parts.next().is_some() {
        return None;
    }
    Some(Route { spec: ModelSpec { name, version, signature: String::new() }, verb })
}

fn called(verb: &str) -> Option<Verb> {
    [("predict", Verb::Predict), ("classify", Verb::Classify), ("regress", Verb::Regress)]
        .into_iter()
        .find_map(|(name, called)| verb.eq_ignore_ascii_case(name).then_some(called))
}

/// Resolves percent escapes.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (hex, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed() {
        let route =
            |path: &str| parse(path).map(|route| (route.spec.name, route.spec.version, route.verb));
        let number = |n| Some(VersionChoice::Number(n));
        let label = |l: &str| Some(VersionChoice::Label(l.into()));
        assert_eq!(route("/v1/models/m"), Some(("m".into(), None, Verb::Status)));
        assert_eq!(
            route("/v1/models/m/versions/3:predict"),
            Some(("m".into(), number(3), Verb::Predict))
        );
        assert_eq!(
            route("/V1/Models/a%20b/labels/x:Classify"),
            Some(("a b".into(), label("x"), Verb::Classify))
        );
        assert_eq!(
            route("/v1/models/m/versions/3/metadata"),
            Some(("m".into(), number(3), Verb::Metadata))
        );
        for bad in [
            "/v1/models",
            "/v1/models/",
            "/v1/models/m:explain",
            "/v1/models/m/versions/x",
            "/v1/models/m/versions/-1",
            "/v1/models/m/x/1",
            "/v2/models/m",
            "/",
            "/v1/models/m/versions/1/more",
            "/v1/models/%zz",
        ] {
            assert_eq!(route(bad), None, "{bad}");
        }
    }
}
