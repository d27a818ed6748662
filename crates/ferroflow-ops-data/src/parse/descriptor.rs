//! Descriptions of protocol buffer messages: the fields of one message of a FileDescriptorSet.

use crate::prelude::*;
use ferroflow_op_kit::file::read_file;
use ferroflow_op_kit::protobuf::fields;

/// How the values of a field are encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Encoding {
    Varint,
    /// Small negative numbers are short.
    ZigZag,
    Fixed32,
    Fixed64,
    Bytes,
}

/// The type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueKind {
    Signed,
    Unsigned,
    Bool,
    Float,
    Double,
    Text,
}

/// One field of a message.
#[derive(Clone, Debug)]
pub(super) struct FieldDescriptor {
    pub name: String,
    pub number: u32,
    pub is_repeated: bool,
    pub is_packed: bool,
    pub encoding: Encoding,
    pub kind: ValueKind,
    /// Values of 32 bits.
    pub is_narrow: bool,
    pub default: Option<String>,
}

/// The fields of `message`, from the descriptors that `source` names: `bytes://` followed by a
/// serialized FileDescriptorSet, or the name of a file with one.
pub(super) fn describe(source: &[u8], message: &str) -> Result<Vec<FieldDescriptor>> {
    let set = match source.strip_prefix(b"bytes://") {
        Some(set) => set.to_vec(),
        None if source.is_empty() || source == b"local://" => bail!(
            InvalidArgument,
            "No descriptor found for message type '{message}': descriptor_source 'local://' names \
             the messages compiled into TensorFlow, which Ferroflow does not have; pass \
             'bytes://' and a serialized FileDescriptorSet, or the name of a file with one"
        ),
        None => read_file(&String::from_utf8_lossy(source))?,
    };
    let found = find_message(&set, message.trim_start_matches('.'))
        .ok_or_else(|| err!(InvalidArgument, "descriptor_source is not a FileDescriptorSet"))?;
    let (found, is_proto3) = found
        .ok_or_else(|| err!(InvalidArgument, "No descriptor found for message type '{message}'"))?;
    let described = message_fields(&found, is_proto3);
    described.ok_or_else(|| err!(InvalidArgument, "the descriptor of '{message}' is malformed"))
}

/// The DescriptorProto of a message, and whether its file is proto3. The outer `None` is for a
/// malformed set.
type Found = Option<(Vec<u8>, bool)>;

fn find_message(set: &[u8], wanted: &str) -> Option<Found> {
    for (number, file) in fields(set)? {
        if number != 1 {
            continue;
        }
        let (mut package, mut is_proto3, mut messages) = (String::new(), false, Vec::new());
        for (number, value) in fields(file.as_bytes()?)? {
            match number {
                2 => package = String::from_utf8(value.as_bytes()?.to_vec()).ok()?,
                4 => messages.push(value.as_bytes()?),
                12 => is_proto3 = value.as_bytes()? == b"proto3",
                _ => {}
            }
        }
        for message in messages {
            if let Some(found) = nested(message, &package, wanted, 0)? {
                return Some(Some((found, is_proto3)));
            }
        }
    }
    Some(None)
}

fn nested(message: &[u8], outer: &str, wanted: &str, depth: u32) -> Option<Option<Vec<u8>>> {
    if depth > 100 {
        return None;
    }
    let parts = fields(message)?;
    let name = parts.iter().find(|part| part.0 == 1)?.1.as_bytes()?;
    let name = std::str::from_utf8(name).ok()?;
    let full = if outer.is_empty() { name.to_string() } else { format!("{outer}.{name}") };
    if full == wanted {
        return Some(Some(message.to_vec()));
    }
    for (_, inner) in parts.iter().filter(|part| part.0 == 3) {
        if let Some(found) = nested(inner.as_bytes()?, &full, wanted, depth + 1)? {
            return Some(Some(found));
        }
    }
    Some(None)
}

fn message_fields(message: &[u8], is_proto3: bool) -> Option<Vec<FieldDescriptor>> {
    let parts = fields(message)?;
    let own = parts.iter().filter(|part| part.0 == 2);
    own.map(|(_, field)| field_descriptor(field.as_bytes()?, is_proto3)).collect()
}

fn field_descriptor(bytes: &[u8], is_proto3: bool) -> Option<FieldDescriptor> {
    let (mut name, mut number, mut label, mut kind) = (String::new(), 0, 0, 0);
    let (mut default, mut packed) = (None, None);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    for (field, value) in fields(bytes)? {
        match field {
            1 => name = text(value.as_bytes()?)?,
            3 => number = u32::try_from(value.as_varint()?).ok()?,
            4 => label = value.as_varint()?,
            5 => kind = value.as_varint()?,
            7 => default = Some(text(value.as_bytes()?)?),
            8 => {
                for (option, value) in fields(value.as_bytes()?)? {
                    if option == 2 {
                        packed = Some(value.as_varint()? != 0);
                    }
                }
            }
            _ => {}
        }
    }
    use Encoding::*;
    use ValueKind::*;
    let (encoding, of, is_narrow) = match kind {
        1 => (Fixed64, Double, false),
        2 => (Fixed32, Float, true),
        3 => (Varint, Signed, false),
        4 => (Varint, Unsigned, false),
        5 => (Varint, Signed, true),
        6 => (Fixed64, Unsigned, false),
        7 => (Fixed32, Unsigned, true),
        8 => (Varint, Bool, false),
        9 | 11 | 12 => (Bytes, Text, false),
        13 => (Varint, Unsigned, true),
        14 => (Varint, Signed, true),
        15 => (Fixed32, Signed, true),
        16 => (Fixed64, Signed, false),
        17 => (ZigZag, Signed, true),
        18 => (ZigZag, Signed, false),
        // Groups are an old form of messages.
        _ => return None,
    };
    let is_repeated = label == 3;
    Some(FieldDescriptor {
        name,
        number,
        is_repeated,
        is_packed: is_repeated && encoding != Bytes && packed.unwrap_or(is_proto3),
        encoding,
        kind: of,
        is_narrow,
        default,
    })
}
