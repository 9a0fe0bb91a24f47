//! The classes of Java's library whose fields are not what they are: lists, maps, numbers, times.

use super::stream::{Item, Object};
use super::view::{Outcome, View, time};
use crate::java::known_classes::locale_text;
use crate::java::{
    BigDecimal, BigInteger, ClassName, Collection, Constant, Date, EnumSet, Map, Object as Fields, Text,
    Uuid, Value,
};
use crate::memory;

/// No name of a class below is longer.
const LONGEST: usize = 64;

/// Longer numbers have no use, as in Kryo.
const MAX_BIG: usize = 1 << 16;

/// The value of an object, if its class, or one above it, is known.
pub(super) fn value<'a>(view: &mut View<'a>, object: &'a Object) -> Outcome<Option<Value>> {
    for (level, class) in view.lineage(object.class).enumerate() {
        // A name may be long, and is looked at for each object.
        if class.len() > LONGEST || !class.starts_with(b"java.") {
            continue;
        }
        let Ok(class) = str::from_utf8(class) else { continue };
        if level == 0
            && let Some(value) = scalar(view, object, class)?
        {
            return Ok(Some(value));
        }
        if let Some(items) = elements(view, object, class) {
            return Ok(Some(collection(view, object, items)?));
        }
        if let Some(items) = entries(view, object, class) {
            return Ok(Some(map(view, object, items)?));
        }
        if let Some(value) = around(view, object, class)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

pub(super) fn text(class: &'static str, text: String) -> Value {
    Value::Text(Box::new(Text { class: ClassName::Borrowed(class), text }))
}

/// What is a variant of [`Value`], or has a text or fields there.
fn scalar<'a>(view: &mut View<'a>, object: &'a Object, class: &str) -> Outcome<Option<Value>> {
    let read = |view: &mut View<'a>| -> Option<Value> {
        Some(match class {
            "java.lang.Boolean" => Value::Boolean(view.primitive(object, "value", b'Z')? != [0]),
            "java.lang.Byte" => Value::Byte(i8::from_be_bytes(view.primitive(object, "value", b'B')?)),
            "java.lang.Short" => Value::Short(i16::from_be_bytes(view.primitive(object, "value", b'S')?)),
            "java.lang.Character" => {
                Value::Character(u16::from_be_bytes(view.primitive(object, "value", b'C')?))
            }
            "java.lang.Integer" => Value::Integer(view.int(object, "value")?),
            "java.lang.Long" => Value::Long(i64::from_be_bytes(view.primitive(object, "value", b'J')?)),
            "java.lang.Float" => Value::Float(f32::from_be_bytes(view.primitive(object, "value", b'F')?)),
            "java.lang.Double" => Value::Double(f64::from_be_bytes(view.primitive(object, "value", b'D')?)),
            "java.math.BigInteger" => Value::BigInteger(big(view, object)?),
            "java.math.BigDecimal" => {
                let unscaled = view.object_of(view.item(object, "intVal")?)?;
                Value::BigDecimal(BigDecimal::new(big(view, unscaled)?, view.int(object, "scale")?))
            }
            "java.util.UUID" => {
                let [high, low] = [
                    view.primitive(object, "mostSigBits", b'J')?,
                    view.primitive(object, "leastSigBits", b'J')?,
                ];
                let bits = u128::from(u64::from_be_bytes(high)) << 64 | u128::from(u64::from_be_bytes(low));
                Value::Uuid(Uuid::from_bytes(bits.to_be_bytes()))
            }
            "java.util.Date" => Value::Date(Date::from_millis(millis(view, object)?)),
            "java.sql.Date" | "java.sql.Time" => {
                let time = Value::Date(Date::from_millis(millis(view, object)?));
                fields(class, vec![("time", time)])
            }
            "java.sql.Timestamp" => {
                let nanos = view.int(object, "nanos")?;
                let millis = millis(view, object)?.checked_add(i64::from(nanos) / 1_000_000)?;
                let time = Value::Date(Date::from_millis(millis));
                fields(class, vec![("time", time), ("nanos", Value::Integer(nanos))])
            }
            "java.time.Ser" => return time(view, object),
            "java.util.concurrent.atomic.AtomicBoolean" => {
                let value = Value::Boolean(view.int(object, "value")? != 0);
                fields(class, vec![("value", value)])
            }
            _ => return None,
        })
    };
    if let Some(value) = read(view) {
        return Ok(Some(value));
    }
    Ok(match class {
        "java.net.URI" => texts(view, object, ["string"])?.map(|[uri]| text("java.net.URI", uri)),
        "java.util.Currency" => {
            texts(view, object, ["currencyCode"])?.map(|[code]| text("java.util.Currency", code))
        }
        "java.util.Locale" => {
            match texts(view, object, ["language", "country", "variant", "script", "extensions"])? {
                Some([language, country, variant, script, extensions])
                    if script.is_empty() && extensions.is_empty() =>
                {
                    locale_text(&language, &country, &variant).map(|locale| text("java.util.Locale", locale))
                }
                _ => None,
            }
        }
        "java.lang.StringBuilder" => builder(view, object),
        "java.util.regex.Pattern" => {
            let flags = view.int(object, "flags");
            let pattern = texts(view, object, ["pattern"])?;
            pattern.zip(flags).map(|([pattern], flags)| {
                fields(class, vec![("pattern", Value::String(pattern)), ("flags", Value::Integer(flags))])
            })
        }
        "java.util.BitSet" => match view.item(object, "bits") {
            Some(bits) => Some(fields(class, vec![("words", view.value(bits)?)])),
            None => None,
        },
        _ => None,
    })
}

fn fields(class: &str, fields: Vec<(&'static str, Value)>) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Value::Object(Box::new(Fields { class: class.to_owned().into(), fields }))
}

/// Fields that are texts.
fn texts<const N: usize>(
    view: &mut View<'_>,
    object: &Object,
    names: [&str; N],
) -> Outcome<Option<[String; N]>> {
    let mut texts = [const { String::new() }; N];
    for (text, name) in texts.iter_mut().zip(names) {
        let Some(Item::Entity(id)) = view.item(object, name) else { return Ok(None) };
        if !view.is_text(id) {
            return Ok(None);
        }
        *text = view.text(id)?;
    }
    Ok(Some(texts))
}

fn builder(view: &mut View<'_>, object: &Object) -> Option<Value> {
    let mut contents = view.contents(view.part(object, "java.lang.StringBuilder")?);
    let count = usize::try_from(contents.int()?).ok()?;
    let chars = view.array_of(contents.item()?)?.primitive.of(view.payload);
    let units: Vec<_> =
        chars.as_chunks().0.get(..count)?.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
    Some(text("java.lang.StringBuilder", String::from_utf16(&units).ok()?))
}

fn millis(view: &View<'_>, object: &Object) -> Option<i64> {
    view.contents(view.part(object, "java.util.Date")?).long()
}

fn big(view: &mut View<'_>, object: &Object) -> Option<BigInteger> {
    let signum = view.int(object, "signum")?;
    let magnitude = view.array_of(view.item(object, "magnitude")?)?.primitive.of(view.payload);
    if magnitude.len() > MAX_BIG {
        return None;
    }
    let mut bytes = [&[0], magnitude].concat();
    if signum < 0 {
        // In two's complement.
        let mut carry = true;
        for byte in bytes.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(carry.into());
        }
    }
    Some(BigInteger::from_be_bytes(&bytes))
}

/// The elements of a list, set or queue, if that is what the class is.
fn elements<'a>(view: &mut View<'a>, object: &'a Object, class: &str) -> Option<&'a [Item]> {
    let contents = || Some(view.contents(view.part(object, class)?));
    match class {
        "java.util.ArrayList" | "java.util.PriorityQueue" => {
            let size = view.int(object, "size")?;
            let mut contents = contents()?;
            contents.int()?;
            contents.items(size)
        }
        "java.util.LinkedList"
        | "java.util.ArrayDeque"
        | "java.util.concurrent.CopyOnWriteArrayList"
        | "java.util.CollSer" => {
            // That of a map is in front of its entries.
            if class == "java.util.CollSer" && matches!(view.int(object, "tag")? & 0xff, 3) {
                return None;
            }
            let mut contents = contents()?;
            let size = contents.int()?;
            contents.items(size)
        }
        "java.util.HashSet" => {
            let mut contents = contents()?;
            let [_, _, size] = [contents.int()?, contents.int()?, contents.int()?];
            contents.items(size)
        }
        "java.util.TreeSet" => {
            let mut contents = contents()?;
            contents.item()?;
            let size = contents.int()?;
            contents.items(size)
        }
        "java.util.concurrent.ConcurrentLinkedQueue"
        | "java.util.concurrent.ConcurrentLinkedDeque"
        | "java.util.concurrent.LinkedBlockingQueue" => contents()?.items_before_null(),
        "java.util.concurrent.LinkedBlockingDeque" => contents()?.items_before_null(),
        "java.util.Vector" => {
            let elements = &view.array_of(view.item(object, "elementData")?)?.elements;
            elements.get(..usize::try_from(view.int(object, "elementCount")?).ok()?)
        }
        "java.util.Arrays$ArrayList" => Some(&view.array_of(view.item(object, "a")?)?.elements),
        "java.util.Collections$EmptyList" | "java.util.Collections$EmptySet" => Some(&[]),
        _ => None,
    }
}

/// The keys and values of a map, if that is what the class is.
fn entries<'a>(view: &View<'a>, object: &'a Object, class: &str) -> Option<&'a [Item]> {
    let contents = || Some(view.contents(view.part(object, class)?));
    let twice = |size: i32| size.checked_mul(2);
    match class {
        "java.util.HashMap" | "java.util.Hashtable" => {
            let mut contents = contents()?;
            let [_, size] = [contents.int()?, contents.int()?];
            contents.items(twice(size)?)
        }
        "java.util.TreeMap" | "java.util.EnumMap" | "java.util.IdentityHashMap" => {
            let mut contents = contents()?;
            let size = contents.int()?;
            contents.items(twice(size)?)
        }
        "java.util.CollSer" if view.int(object, "tag")? & 0xff == 3 => {
            let mut contents = contents()?;
            let size = contents.int()?;
            contents.items(size)
        }
        "java.util.concurrent.ConcurrentHashMap" => {
            let items = contents()?.items_before_null()?;
            let (last, items) = items.split_last()?;
            (*last == Item::Null).then_some(items)
        }
        "java.util.concurrent.ConcurrentSkipListMap" => contents()?.items_before_null(),
        "java.util.Collections$EmptyMap" => Some(&[]),
        _ => None,
    }
}

fn collection<'a>(view: &mut View<'a>, object: &'a Object, items: &[Item]) -> Outcome<Value> {
    let class = class(view, object)?;
    let sorted = view.part(object, "java.util.TreeSet").and_then(|part| view.contents(part).item());
    let comparator = comparator(view, sorted.or(view.item(object, "comparator")))?;
    let elements = view.values(items)?;
    Ok(Value::Collection(Box::new(Collection { class, comparator, elements })))
}

fn map<'a>(view: &mut View<'a>, object: &'a Object, items: &[Item]) -> Outcome<Value> {
    let class = class(view, object)?;
    let comparator = comparator(view, view.item(object, "comparator"))?;
    let entries = view.entries(items)?;
    Ok(Value::Map(Box::new(Map { class, comparator, entries })))
}

/// The class of a list or map. `List.of(…)` and the like do not say theirs.
fn class(view: &mut View<'_>, object: &Object) -> Outcome<ClassName> {
    let (name, _) = view.class(object.class)?;
    Ok(match (&*name, view.int(object, "tag").map(|tag| tag & 0xff)) {
        ("java.util.CollSer", Some(2)) => "java.util.ImmutableCollections$SetN".into(),
        ("java.util.CollSer", Some(3)) => "java.util.ImmutableCollections$MapN".into(),
        ("java.util.CollSer", _) => "java.util.ImmutableCollections$ListN".into(),
        _ => name.into(),
    })
}

fn comparator(view: &mut View<'_>, item: Option<Item>) -> Outcome<Option<ClassName>> {
    match item.and_then(|item| view.object_of(item)) {
        Some(object) => Ok(Some(view.class(object.class)?.0.into())),
        None => Ok(None),
    }
}

/// Reads a list or map around another item.
type Read<'a> = fn(&mut View<'a>, &'a Object, Item) -> Outcome<Option<Value>>;

/// A list or map around another, or around a single element. Only what the class has is looked up: it may
/// have very many fields.
fn around<'a>(view: &mut View<'a>, object: &'a Object, class: &str) -> Outcome<Option<Value>> {
    let item = |view: &View<'a>, name| view.item(object, name);
    let Some(kind) = class.strip_prefix("java.util.Collections$") else {
        let (name, read): (_, Read<'a>) = match class {
            "java.util.concurrent.CopyOnWriteArraySet" => ("al", inside),
            "java.util.concurrent.ConcurrentSkipListSet" => ("m", keys),
            "java.util.EnumSet$SerializationProxy" => ("elements", enum_set),
            _ => return Ok(None),
        };
        return item(view, name).map_or(Ok(None), |item| read(view, object, item));
    };
    if ["Unmodifiable", "Synchronized", "Checked"].iter().any(|front| kind.starts_with(front)) {
        let inner = item(view, "c").or_else(|| item(view, "m"));
        return inner.map_or(Ok(None), |inner| inside(view, object, inner));
    }
    match kind {
        "SetFromMap" => item(view, "m").map_or(Ok(None), |inner| keys(view, object, inner)),
        "SingletonList" | "SingletonSet" => {
            let element = item(view, "element");
            element.map(|element| collection(view, object, &[element])).transpose()
        }
        "SingletonMap" => {
            let entry = item(view, "k").zip(item(view, "v"));
            entry.map(|(key, value)| map(view, object, &[key, value])).transpose()
        }
        "CopiesList" => item(view, "element").map_or(Ok(None), |element| copies(view, object, element)),
        _ => Ok(None),
    }
}

/// What a list or map is around, with its own class.
fn inside<'a>(view: &mut View<'a>, object: &'a Object, inner: Item) -> Outcome<Option<Value>> {
    let (class, _) = view.class(object.class)?;
    Ok(match view.value(inner)? {
        Value::Collection(mut list) => {
            list.class = class.into();
            Some(Value::Collection(list))
        }
        Value::Map(mut map) => {
            map.class = class.into();
            Some(Value::Map(map))
        }
        Value::EnumSet(set) => {
            let mut elements = Vec::new();
            for constant in set.constants {
                view.named(set.element.as_bytes())?;
                let class = set.element.clone();
                memory::push(&mut elements, Value::Enum(Box::new(crate::java::Enum { class, constant })))?;
            }
            Some(Value::Collection(Box::new(Collection { class: class.into(), comparator: None, elements })))
        }
        _ => None,
    })
}

fn keys<'a>(view: &mut View<'a>, object: &'a Object, map: Item) -> Outcome<Option<Value>> {
    let (class, _) = view.class(object.class)?;
    let Value::Map(map) = view.value(map)? else { return Ok(None) };
    let elements = map.entries.into_iter().map(|(key, _)| key).collect();
    let (class, comparator) = (class.into(), map.comparator);
    Ok(Some(Value::Collection(Box::new(Collection { class, comparator, elements }))))
}

fn enum_set<'a>(view: &mut View<'a>, object: &'a Object, elements: Item) -> Outcome<Option<Value>> {
    let Some(Item::Entity(_)) = view.item(object, "elementType") else { return Ok(None) };
    let Some(of) = view.item(object, "elementType") else { return Ok(None) };
    let Value::Text(element) = view.value(of)? else { return Ok(None) };
    let Some(elements) = view.array_of(elements) else { return Ok(None) };
    let constant = |value| match value {
        Value::Enum(constant) => Some(constant.constant),
        _ => None,
    };
    let constants: Option<Vec<Constant>> =
        view.values(&elements.elements)?.into_iter().map(constant).collect();
    let (class, element) = ("java.util.RegularEnumSet".into(), element.text.into());
    Ok(constants.map(|constants| Value::EnumSet(Box::new(EnumSet { class, element, constants }))))
}

/// One element, repeated this number of times.
fn copies<'a>(view: &mut View<'a>, object: &'a Object, element: Item) -> Outcome<Option<Value>> {
    let Some(Ok(count)) = view.int(object, "n").map(usize::try_from) else { return Ok(None) };
    view.charge(count.saturating_mul(size_of::<Value>()))?;
    Ok(Some(collection(view, object, &vec![element; count])?))
}
