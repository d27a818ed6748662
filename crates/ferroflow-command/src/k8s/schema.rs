//! Compares documents with the schemas of custom resource definitions, for tests. Supports the
//! keywords that these use, except patterns.

use serde_json::Value;

/// The parts of a document that do not match a schema, with the place of each.
pub fn mistakes(document: &Value, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(document, schema, "", &mut found);
    found
}

fn compare(value: &Value, schema: &Value, place: &str, found: &mut Vec<String>) {
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is_type = |name: &&str| match *name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other}"),
    };
    if !types.is_empty() && !types.iter().any(is_type) {
        found.push(format!("{place}: {value} is not of type {}", types.join(" or ")));
    }
    if schema.get("const").is_some_and(|expected| expected != value) {
        found.push(format!("{place}: {value} is not {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|all| !all.contains(value)) {
        found.push(format!("{place}: {value} is not one of {}", schema["enum"]));
    }
    let number = value.as_f64();
    let is_out = |bound: &str, wrong: fn(f64, f64) -> bool| {
        schema[bound].as_f64().zip(number).is_some_and(|(bound, number)| wrong(number, bound))
    };
    if is_out("minimum", |n, bound| n < bound) || is_out("maximum", |n, bound| n > bound) {
        found.push(format!("{place}: {value} is out of range"));
    }
    let length = value
        .as_array()
        .map_or_else(|| value.as_str().map(|text| text.chars().count()), |items| Some(items.len()));
    let limit = |names: [&str; 2]| names.iter().find_map(|name| schema[*name].as_u64());
    if let Some(length) = length {
        let (least, most) = (limit(["minItems", "minLength"]), limit(["maxItems", "maxLength"]));
        if least.is_some_and(|l| (length as u64) < l) || most.is_some_and(|m| length as u64 > m) {
            found.push(format!("{place}: {length} is not an allowed length"));
        }
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        compare(item, &schema["items"], &format!("{place}/{i}"), found);
    }
    let Some(fields) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !name.as_str().is_some_and(|name| fields.contains_key(name)) {
            found.push(format!("{place}: {name} is missing"));
        }
    }
    for (name, field) in fields {
        let place = format!("{place}/{name}");
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(known), _) => compare(field, known, &place, found),
            (None, Value::Bool(false)) => found.push(format!("{place}: unknown field")),
            (None, other) => compare(field, other, &place, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_mistake_is_found() {
        let schema = json!({
            "type": "object",
            "required": ["a"],
            "additionalProperties": false,
            "properties": {
                "a": {"type": "integer", "minimum": 1},
                "b": {"type": "array", "maxItems": 1, "items": {"enum": ["x"]}},
                "c": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        });
        assert!(mistakes(&json!({"a": 1, "b": ["x"], "c": {"d": "e"}}), &schema).is_empty());
        for wrong in [
            json!({}),
            json!({"a": "1"}),
            json!({"a": 0}),
            json!({"a": 1, "b": ["y"]}),
            json!({"a": 1, "b": ["x", "x"]}),
            json!({"a": 1, "c": {"d": 1}}),
            json!({"a": 1, "d": 1}),
        ] {
            assert_eq!(mistakes(&wrong, &schema).len(), 1, "{wrong}");
        }
    }
}
