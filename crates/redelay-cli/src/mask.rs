//! Values that a profile hides. Pure.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What is printed instead.
const MASKED: &str = "\"(masked)\"";
/// How base64 begins of what Java's own serialization has written: a stream, or, behind another one, an
/// object or an array of a new class or of one that is known. A field that cannot be read is printed like
/// that.
const SERIALIZED: [&str; 5] = ["\"rO0AB", "\"c3I", "\"c3E", "\"dXI", "\"dXE"];

/// Paths of values that are not printed: `card.number`. `*` is any one property, and `**` any number of them.
/// Elements of lists have the path of the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mask(Vec<Vec<String>>);

impl Mask {
    pub(crate) fn new(paths: &[String]) -> Self {
        Self(paths.iter().map(|path| path.split('.').map(str::to_owned).collect()).collect())
    }

    /// Whether it hides nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The JSON without what is hidden. Hidden is also what may be anything: what is in no property; what has
    /// no properties, although a path names one; the bytes of a serialized object; and a list of pairs, which
    /// is how a map is written whose keys are no texts. Numbers stay as they are written.
    pub(crate) fn apply(&self, json: Box<RawValue>) -> Box<RawValue> {
        if self.is_empty() {
            return json;
        }
        let paths: Vec<&[String]> = self.0.iter().map(Vec::as_slice).collect();
        let mut out = String::with_capacity(json.get().len());
        put(&mut out, &json, &paths, false);
        RawValue::from_string(out).unwrap_or(json)
    }
}

/// The parts of a JSON value, as they are written.
enum Parts {
    Object(Vec<(String, Box<RawValue>)>),
    List(Vec<Box<RawValue>>),
}

fn put(out: &mut String, json: &RawValue, paths: &[&[String]], is_in_property: bool) {
    if paths.iter().any(|path| path.is_empty() || *path == ["**"]) {
        return out.push_str(MASKED);
    }
    match serde_json::from_str::<Parts>(json.get()) {
        Ok(Parts::Object(properties)) => {
            out.push('{');
            for (at, (name, value)) in properties.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(&serde_json::Value::from(name.as_str()).to_string());
                out.push(':');
                put(out, value, &behind(paths, name), true);
            }
            out.push('}');
        }
        Ok(Parts::List(values)) if values.iter().any(|value| is_pair(value)) => out.push_str(MASKED),
        Ok(Parts::List(values)) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                put(out, value, paths, is_in_property);
            }
            out.push(']');
        }
        Err(_) => {
            let has_properties = paths.iter().any(|path| path[0] != "**");
            let is_serialized = SERIALIZED.iter().any(|begin| json.get().starts_with(begin));
            let may_be_anything = !is_in_property || has_properties || is_serialized;
            out.push_str(if may_be_anything { MASKED } else { json.get() });
        }
    }
}

fn is_pair(json: &RawValue) -> bool {
    matches!(serde_json::from_str(json.get()), Ok(Parts::List(parts)) if parts.len() == 2)
}

/// What is left of the paths behind this property.
fn behind<'a>(paths: &[&'a [String]], name: &str) -> Vec<&'a [String]> {
    let mut left = Vec::new();
    for path in paths {
        let mut rest = *path;
        while let [first, behind @ ..] = rest {
            if first == "**" {
                // It takes this property, or ends in front of it.
                left.push(rest);
                rest = behind;
                continue;
            }
            if first == "*" || first == name {
                left.push(behind);
            }
            break;
        }
    }
    left
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Parts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or a list")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts, A::Error> {
                let mut properties = Vec::new();
                while let Some(property) = map.next_entry()? {
                    properties.push(property);
                }
                Ok(Parts::Object(properties))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Parts, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = list.next_element()? {
                    values.push(value);
                }
                Ok(Parts::List(values))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(paths: &[&str], json: &str) -> String {
        let paths: Vec<_> = paths.iter().map(ToString::to_string).collect();
        Mask::new(&paths).apply(RawValue::from_string(json.to_owned()).unwrap()).get().to_owned()
    }

    #[test]
    fn paths_are_hidden() {
        let order = r#"{"id":12345678901234567890123,"card":{"number":"4111","name":"A"},"items":[{"price":1.50},{"price":[2]}]}"#;
        for (paths, shown) in [
            (&[][..], order),
            (
                &["card.number"],
                r#"{"id":12345678901234567890123,"card":{"number":"(masked)","name":"A"},"items":[{"price":1.50},{"price":[2]}]}"#,
            ),
            (
                &["items.price", "card"],
                r#"{"id":12345678901234567890123,"card":"(masked)","items":[{"price":"(masked)"},{"price":"(masked)"}]}"#,
            ),
            (&["*"], r#"{"id":"(masked)","card":"(masked)","items":"(masked)"}"#),
            (
                &["**.number", "**.price"],
                r#"{"id":12345678901234567890123,"card":{"number":"(masked)","name":"A"},"items":[{"price":"(masked)"},{"price":"(masked)"}]}"#,
            ),
            (&["**"], "\"(masked)\""),
            (&["no.such"], order),
        ] {
            assert_eq!(masked(paths, order), shown, "{paths:?}");
        }
        assert_eq!(masked(&["a"], "\"a text\""), "\"(masked)\"");
        assert_eq!(masked(&["a"], "7"), "\"(masked)\"");
        assert_eq!(masked(&[], "7"), "7");
        assert_eq!(
            masked(&["a"], r#"[{"a":1,"b":[2,3]},"c"]"#),
            r#"[{"a":"(masked)","b":[2,3]},"(masked)"]"#
        );
    }

    #[test]
    fn what_may_have_the_property_is_hidden() {
        let order = r#"{"id":1,"card":"rO0ABXNy","note":"rO0ABXNy"}"#;
        assert_eq!(masked(&["card.number"], order), r#"{"id":1,"card":"(masked)","note":"(masked)"}"#);
        assert_eq!(masked(&["**.number"], order), r#"{"id":1,"card":"(masked)","note":"(masked)"}"#);
        let objects = r#"{"a":"c3IA","b":"c3EA","c":"dXIA","d":"dXEA","e":"c3QA"}"#;
        let hidden = r#"{"a":"(masked)","b":"(masked)","c":"(masked)","d":"(masked)","e":"c3QA"}"#;
        assert_eq!(masked(&["**.number"], objects), hidden);
        assert_eq!(masked(&["id.number"], r#"{"id":1,"note":"x"}"#), r#"{"id":"(masked)","note":"x"}"#);
        assert_eq!(masked(&["a.b.c"], r#"{"a":{"b":7,"d":8}}"#), r#"{"a":{"b":"(masked)","d":8}}"#);
    }

    #[test]
    fn maps_whose_keys_are_no_texts_are_hidden() {
        let map = r#"[["card",{"number":"4111"}],[null,1]]"#;
        assert_eq!(masked(&["card.number"], map), "\"(masked)\"");
        let order = format!(r#"{{"id":1,"more":{map}}}"#);
        assert_eq!(masked(&["card.number"], &order), r#"{"id":1,"more":"(masked)"}"#);
        assert_eq!(masked(&[], &order), order);
    }
}
