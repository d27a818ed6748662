//! DecodeJSONExample.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_op_kit::protobuf::Message;
use serde_json::{Map, Value as Json};

fn wrong(what: &str) -> Error {
    err!(InvalidArgument, "Error while parsing JSON: {what}")
}

/// The members of an object that may be one of these names (camel case or not); others are refused.
fn members<'a>(json: &'a Json, names: &[[&str; 2]]) -> Result<Vec<(usize, &'a Json)>> {
    let object: &Map<String, Json> = match json {
        Json::Null => return Ok(Vec::new()),
        Json::Object(object) => object,
        _ => return Err(wrong("expected an object")),
    };
    let mut found = Vec::new();
    for (name, value) in object {
        match names.iter().position(|n| n.contains(&name.as_str())) {
            Some(i) => found.push((i, value)),
            None => return Err(wrong(&format!("{name}: Cannot find field."))),
        }
    }
    Ok(found)
}

fn float(json: &Json) -> Option<f32> {
    match json {
        Json::Number(n) => n.as_f64().map(|x| x as f32),
        Json::String(s) => match s.as_str() {
            "NaN" => Some(f32::NAN),
            "Infinity" => Some(f32::INFINITY),
            "-Infinity" => Some(f32::NEG_INFINITY),
            s => s.parse().ok(),
        },
        _ => None,
    }
}

fn int(json: &Json) -> Option<i64> {
    match json {
        // A whole number may be written with a point.
        Json::Number(n) => n.as_i64().or_else(|| {
            let x = n.as_f64().filter(|x| x.fract() == 0.0 && x.abs() < 9.2e18)?;
            Some(x as i64)
        }),
        Json::String(s) => s.parse().ok(),
        _ => None,
    }
}

/// Bytes in base64, in either alphabet.
fn bytes(json: &Json) -> Option<Bytes> {
    let text = json.as_str()?.replace('+', "-").replace('/', "_");
    crate::string::decode_base64(text.as_bytes()).ok()
}

/// A Feature: one list of values.
fn feature(json: &Json) -> Result<Message> {
    let kinds =
        [["bytesList", "bytes_list"], ["floatList", "float_list"], ["int64List", "int64_list"]];
    let mut out = Message::new();
    for (kind, list) in members(json, &kinds)? {
        let mut values = Message::new();
        for (_, items) in members(list, &[["value", "value"]])? {
            let items = match items {
                Json::Array(items) => items.as_slice(),
                Json::Null => &[],
                _ => return Err(wrong("value: expected a list")),
            };
            for item in items {
                let bad = || wrong(&format!("value: invalid value {item}"));
                match kind {
                    0 => values.bytes(1, &bytes(item).ok_or_else(bad)?),
                    1 => values.float(1, float(item).ok_or_else(bad)?),
                    _ => values.varint(1, int(item).ok_or_else(bad)? as u64),
                };
            }
        }
        out.message(kind as u32 + 1, &values);
    }
    Ok(out)
}

/// An Example record of its JSON form.
fn example(text: &[u8]) -> Result<Bytes> {
    let text = String::from_utf8_lossy(text);
    let json: Json = serde_json::from_str(&text).map_err(|e| wrong(&format!("{e}\n{text}")))?;
    let mut out = Message::new();
    for (_, json) in members(&json, &[["features", "features"]])? {
        if json.is_null() {
            continue;
        }
        let mut features = Message::new();
        for (_, json) in members(json, &[["feature", "feature"]])? {
            let Json::Object(map) = json else { return Err(wrong("feature: expected an object")) };
            for (name, json) in map {
                let mut entry = Message::new();
                entry.bytes(1, name.as_bytes()).message(2, &feature(json)?);
                features.message(1, &entry);
            }
        }
        out.message(1, &features);
    }
    Ok(Bytes::from(out.into_bytes()))
}

fn decode(ctx: &mut Ctx<'_>) -> Result<()> {
    let mut t = ctx.take_or_copy(0)?;
    for s in t.strings_mut()? {
        *s = example(s)?;
    }
    ctx.set(0, t)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("DecodeJSONExample")
        .doc("Example records of their JSON form.")
        .input("json_examples: string")
        .output("binary_examples: string")
        .shape(shape::same_as_input)
        .cpu_fn(decode);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use bytes::Bytes;

    #[test]
    fn json_becomes_a_record() {
        let decode = |s: &'static str| check("DecodeJSONExample").input(Tensor::string(s));
        decode(
            r#"{"features":{"feature":{"a":{"floatList":{"value":[1.5,2]}},
                "b":{"int64List":{"value":["5",6]}},"c":{"bytesList":{"value":["aGk="]}}}}}"#,
        )
        .gives(Tensor::string(Bytes::from_static(
            b"\n-\n\x11\n\x01a\x12\x0c\x12\n\r\x00\x00\xc0?\r\x00\x00\x00@\n\x0b\n\x01b\x12\x06\x1a\x04\
              \x08\x05\x08\x06\n\x0b\n\x01c\x12\x06\n\x04\n\x02hi",
        )));
        decode("{}").gives(Tensor::string(""));
        decode(r#"{"x":1}"#)
            .fails(Code::InvalidArgument, "Error while parsing JSON: x: Cannot find field.");
        decode("nope").fails(Code::InvalidArgument, "Error while parsing JSON");
    }
}
