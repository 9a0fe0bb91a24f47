//! What Redisson writes where nothing declares the class: in the list or map that a payload is, in a field of
//! `Object`, of enums of which only some constants have bodies; and the nulls that annotations make it write.

use codec::java::{self, BigDecimal, Uuid, Value};
use codec::{CborJackson, JsonJackson, Kryo5, MsgPackJackson};
use redelay_compat_values::zoo::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;

/// Decodes to something that is encoded to the same bytes; or says why not.
pub(super) fn is<T: Debug>(codec: &impl Codec<T>, row: &Row) -> Option<String> {
    let name = &row.name;
    let value = match codec.decode(&row.payload) {
        Ok(value) => value,
        Err(error) => return Some(format!("{name} is not decoded: {error}")),
    };
    let shown = |payload: &[u8]| payload.escape_ascii().to_string();
    match codec.encode(&value) {
        Ok(written) if written == row.payload => None,
        Ok(written) => Some(format!("{name} is {}\n written {}", shown(&row.payload), shown(&written))),
        Err(error) => Some(format!("{name} is not encoded: {error}")),
    }
}

/// Each row as the type that is in its name, and as a `Value` where the payload says what it is.
macro_rules! of_redisson {
    ($test:ident $codec:ident $file:literal $values:expr) => {
        #[test]
        fn $test() {
            fn as_a<T: Debug + Serialize + DeserializeOwned + 'static>(row: &Row) -> Option<String> {
                is::<T>(&$codec, row)
            }

            type Array<T> = java::array::Of<Vec<T>>;
            type Map<T> = Entries<String, T>;
            let mut wrong = Vec::new();
            for row in rows($file) {
                let kind = row.name.rsplit_once('.').map_or(&row.name[..], |(kind, _)| kind);
                wrong.extend(match (kind, &row.name[..]) {
                    ("mixed", _) => as_a::<Mixed>(&row),
                    ("mixes", _) => as_a::<Mixes>(&row),
                    ("mixedset", _) => as_a::<java::enum_set::Of<Vec<Mixed>>>(&row),
                    ("mixedlist", _) => as_a::<Vec<Option<Mixed>>>(&row),
                    ("mixedarray", _) => as_a::<Array<Mixed>>(&row),
                    ("levelset", _) => as_a::<java::enum_set::Of<Vec<Level>>>(&row),
                    (_, "list.money") => as_a::<Vec<Option<Money>>>(&row),
                    (_, "list.tag") => as_a::<Vec<Tag>>(&row),
                    (_, "list.status") => as_a::<Vec<Status>>(&row),
                    (_, "list.short") => as_a::<Vec<i16>>(&row),
                    (_, "list.byte") => as_a::<Vec<i8>>(&row),
                    (_, "list.int") => as_a::<Vec<i32>>(&row),
                    (_, "list.long") => as_a::<Vec<i64>>(&row),
                    (_, "list.float") => as_a::<Vec<f32>>(&row),
                    (_, "list.double") => as_a::<Vec<f64>>(&row),
                    (_, "list.boolean") => as_a::<Vec<bool>>(&row),
                    (_, "list.char") => as_a::<Vec<char>>(&row),
                    (_, "list.string") => as_a::<Vec<String>>(&row),
                    (_, "list.bytes") => as_a::<Vec<Vec<u8>>>(&row),
                    (_, "list.uuid") => as_a::<Vec<Uuid>>(&row),
                    (_, "list.decimal") if $file != "msgpack-jackson-places" => as_a::<Vec<BigDecimal>>(&row),
                    (_, "list.ints") => as_a::<Vec<Array<i32>>>(&row),
                    (_, "list.chars") => as_a::<Vec<Array<char>>>(&row),
                    (_, "list.strings") => as_a::<Vec<Array<Option<String>>>>(&row),
                    (_, "list.moneys") => as_a::<Vec<Array<Money>>>(&row),
                    (_, "list.list.money") => as_a::<Vec<Vec<Money>>>(&row),
                    (_, "list.map.money") => as_a::<Vec<Map<Money>>>(&row),
                    (_, "map.money") => as_a::<Map<Money>>(&row),
                    (_, "map.tag") => as_a::<Map<Tag>>(&row),
                    (_, "map.short") => as_a::<Map<i16>>(&row),
                    (_, "map.list.money") => as_a::<Map<Vec<Money>>>(&row),
                    (_, "array.money") => as_a::<Array<Money>>(&row),
                    (_, "array.list.money") => as_a::<Array<Vec<Money>>>(&row),
                    (_, "tree.short") => as_a::<java::tree_map::Of<Map<i16>>>(&row),
                    (_, "loose.null" | "loose.full") => as_a::<Loose<Money, Tag>>(&row),
                    (_, "loose.deep") => as_a::<Loose<Vec<Money>, Vec<Tag>>>(&row),
                    ("nulls", _) | (_, "list.decimal" | "map.null") => None,
                    _ => panic!("{} is of no type", row.name),
                });
                if $values {
                    wrong.extend(is::<Value>(&$codec, &row).map(|why| format!("as a Value, {why}")));
                }
            }
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    };
}

of_redisson! { kryo_of_redisson Kryo5 "kryo5-places" false }
of_redisson! { json_of_redisson JsonJackson "json-jackson-places" true }
of_redisson! { cbor_of_redisson CborJackson "cbor-jackson-places" true }
of_redisson! { msgpack_of_redisson MsgPackJackson "msgpack-jackson-places" true }
