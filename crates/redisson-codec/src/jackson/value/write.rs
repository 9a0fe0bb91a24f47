//! A [`Value`] to bytes.

use std::borrow::Cow;
use std::marker::PhantomData;

use super::{PATTERN, has_known_fields, is_time, only_field};
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::format::{Format, Group};
use crate::jackson::mapper::{Mapper, Typing};
use crate::jackson::node::{Is, Key, MAX_BIG_BYTES, MAX_DEPTH, MAX_DIGITS, Node, beyond_depth};
use crate::jackson::times;
use crate::jackson::write::{CLASS, Written, enum_set_class, refused, text_of};
use crate::java::known_classes::{Scalar, known};
use crate::java::{Array, BigInteger, Classed, Constant, Object, Value};
use crate::number::{java_float, java_text};
use crate::shown::shown;

/// A map's key, as Jackson prints it.
pub(in crate::jackson) fn key(value: &Value) -> Outcome<Key<'_>> {
    let text = match value {
        Value::Long(key) => return Ok(Key::Number(*key)),
        Value::Integer(key) => return Ok(Key::Number((*key).into())),
        Value::String(text) => return Ok(Key::Text(Cow::Borrowed(text))),
        Value::Boolean(key) => key.to_string(),
        Value::Byte(key) => key.to_string(),
        Value::Short(key) => key.to_string(),
        Value::Character(key) => text_of(&[*key])?,
        Value::Float(key) => java_float(*key),
        Value::Double(key) => java_text(*key),
        Value::BigInteger(key) => number_key(key, key)?,
        Value::BigDecimal(key) => number_key(key.unscaled(), key)?,
        Value::Uuid(key) => key.to_string(),
        Value::Text(text) if !is_time(&text.class) => text.text.clone(),
        Value::Enum(constant) => name(&constant.constant)?.to_owned(),
        _ => return Err(no_key()),
    };
    Ok(Key::Text(text.into()))
}

pub(in crate::jackson) fn no_key() -> Failure {
    Failure::new("a map's key is text, a number, a boolean, an enum or a UUID")
}

/// Refuses a big number that Jackson would not read.
fn check_digits(value: &Value) -> Outcome<()> {
    let big = match value {
        Value::BigInteger(value) => value,
        Value::BigDecimal(value) => value.unscaled(),
        _ => return Ok(()),
    };
    match big.as_be_bytes().len() {
        ..=MAX_BIG_BYTES => Ok(()),
        _ => {
            Err(Failure::new(format!("a number of more than {MAX_DIGITS} digits is more than Jackson reads")))
        }
    }
}

/// A big number as a map's key. To print one of any length would take more than linear time.
fn number_key(unscaled: &BigInteger, key: &impl ToString) -> Outcome<String> {
    let text = (unscaled.as_be_bytes().len() <= MAX_BIG_BYTES).then(|| key.to_string());
    text.filter(|text| text.len() <= MAX_DIGITS)
        .ok_or_else(|| Failure::new(format!("a key of more than {MAX_DIGITS} characters")))
}

fn name(constant: &Constant) -> Outcome<&str> {
    match constant {
        Constant::Name(name) => Ok(name),
        _ => Err(Failure::new("a constant of an enum that has only its number cannot be written by name")),
    }
}

/// Without its class, as at the root or where a field declares it.
fn bare<'v>(value: &'v Value, mapper: &Mapper) -> Option<Is<'v>> {
    Some(match value {
        Value::Byte(value) => Is::Int((*value).into()),
        Value::Short(value) => Is::Int((*value).into()),
        Value::Integer(value) => Is::Int((*value).into()),
        Value::Long(value) => Is::Int(*value),
        Value::Character(value) => Is::Text(char::from_u32((*value).into())?.to_string().into()),
        Value::Float(value) => Is::Float(*value),
        Value::Double(value) => Is::Double(*value),
        Value::Boolean(value) => Is::Bool(*value),
        Value::Bytes(value) => Is::Bytes(Cow::Borrowed(value)),
        Value::BigInteger(value) => Is::Big(value.clone()),
        Value::BigDecimal(value) => Is::Decimal(Box::new(value.clone())),
        Value::Uuid(value) => Is::Text(value.to_string().into()),
        Value::Date(_)
        | Value::Instant(_)
        | Value::LocalDate(_)
        | Value::LocalTime(_)
        | Value::LocalDateTime(_)
        | Value::Duration(_) => times::write(value, mapper).ok()?,
        Value::Text(value) if is_time(&value.class) => {
            times::write_text(&value.class, &value.text, mapper).ok()?
        }
        Value::Text(value) => Is::Text(Cow::Borrowed(&value.text)),
        Value::Enum(value) => Is::Text(Cow::Borrowed(name(&value.constant).ok()?)),
        _ => return None,
    })
}

/// Writes a value to the end of a payload, inside of this many levels.
///
/// Where an `Object` is declared, the place is `open`, and the class is written. Elsewhere it depends on the
/// class.
pub(in crate::jackson) fn write<F: Format>(
    out: &mut Vec<u8>,
    value: &Value,
    open: bool,
    mapper: &Mapper,
    depth: usize,
) -> Outcome<Written> {
    let mut writer = TreeWriter { out, mapper, depth, format: PhantomData::<F> };
    writer.value(value, open, Group::Bare)
}

/// Writes a scalar, whose class is written or not, to the end of a payload.
pub(in crate::jackson) fn write_scalar<F: Format>(
    out: &mut Vec<u8>,
    value: &Value,
    mapper: &Mapper,
    depth: usize,
) -> Outcome<()> {
    TreeWriter { out, mapper, depth, format: PhantomData::<F> }.without_class(value)
}

/// The end of a payload, in which values are written with all that is in them.
struct TreeWriter<'w, F> {
    out: &'w mut Vec<u8>,
    mapper: &'w Mapper,
    /// How many lists and objects are open.
    depth: usize,
    format: PhantomData<F>,
}

impl<F: Format> TreeWriter<'_, F> {
    /// An array without a class is of this group, since it may be behind one.
    fn value(&mut self, value: &Value, open: bool, array: Group) -> Outcome<Written> {
        match value {
            Value::Null => {
                F::null(self.out);
                return Ok(Written::Null);
            }
            Value::Boolean(value) => F::boolean(self.out, *value),
            Value::Integer(value) => F::integer(self.out, (*value).into()),
            Value::Double(value) if value.is_finite() => F::double(self.out, *value),
            Value::String(text) => F::text(self.out, text),
            Value::Bare(value) => match self.bare(value) {
                Some(written) => written?,
                None => return self.value(value, false, array),
            },
            Value::Object(object) => self.object_or_text(object, open)?,
            Value::Map(map) => {
                self.object(&map.class, map.entries.iter().map(|(name, value)| (key(name), value)))?;
            }
            Value::Collection(list) => {
                return self.behind(&list.class, |writer| writer.list(Group::List, &list.elements));
            }
            Value::EnumSet(set) => {
                return self.behind(&enum_set_class(&set.element), |writer| {
                    writer.inside(Group::List, set.constants.len(), |writer| {
                        set.constants.iter().try_for_each(|constant| {
                            F::next(writer.out);
                            F::text(writer.out, name(constant)?);
                            Ok(())
                        })
                    })
                });
            }
            Value::Array(array_of) => return self.array(array_of, open, array),
            Value::Optional(_) => return Err(refused(value.class())),
            Value::Opaque(object) => return Err(refused(&object.class)),
            Value::Serialized(object) => {
                let value = object.clone().into_value().ok_or_else(|| refused(object.class()))?;
                return self.value(&value, open, array);
            }
            Value::Classed(classed) => {
                let Classed { class, value } = &**classed;
                if let Value::Object(object) = value
                    && object.class == *class
                    && has_known_fields(object)
                {
                    self.fields(object)?;
                } else {
                    return self.behind(class, |writer| writer.value(value, false, Group::List));
                }
            }
            value => return self.scalar(value, open),
        }
        Ok(Written::Value)
    }

    /// A scalar without its class.
    fn bare(&mut self, value: &Value) -> Option<Outcome<()>> {
        match value {
            Value::BigInteger(value) => Some(F::big(self.out, value)),
            Value::BigDecimal(value) => Some(F::decimal(self.out, value)),
            _ => bare(value, self.mapper).map(|is| self.node(is)),
        }
    }

    fn node(&mut self, is: Is<'_>) -> Outcome<()> {
        Node { at: 0, is }.write::<F>(self.out, self.depth)
    }

    /// A list or object with what is in it.
    fn inside(
        &mut self,
        group: Group,
        count: usize,
        write: impl FnOnce(&mut Self) -> Outcome<()>,
    ) -> Outcome<Written> {
        self.deeper()?;
        let open = F::open(self.out, group, count);
        write(self)?;
        F::close(self.out, open, count);
        self.depth -= 1;
        Ok(Written::Value)
    }

    fn deeper(&mut self) -> Outcome<()> {
        if self.depth >= MAX_DEPTH {
            return Err(beyond_depth());
        }
        self.depth += 1;
        Ok(())
    }

    /// With its class in front, if classes are written.
    fn behind(&mut self, class: &str, write: impl FnOnce(&mut Self) -> Outcome<Written>) -> Outcome<Written> {
        if self.mapper.typing == Typing::Nowhere {
            return write(self);
        }
        self.deeper()?;
        F::class(self.out, class);
        write(self)?;
        self.out.extend_from_slice(F::BEHIND);
        self.depth -= 1;
        Ok(Written::Value)
    }

    fn list(&mut self, group: Group, values: &[Value]) -> Outcome<Written> {
        self.inside(group, values.len(), |writer| {
            values.iter().try_for_each(|value| {
                F::next(writer.out);
                writer.value(value, true, Group::Bare).map(|_| ())
            })
        })
    }

    fn object_or_text(&mut self, object: &Object, open: bool) -> Outcome<()> {
        if !has_known_fields(object) {
            return self.fields(object);
        }
        if let (PATTERN, Some((_, Value::String(pattern)))) = (&*object.class, object.fields.first()) {
            let text = |writer: &mut Self| {
                F::text(writer.out, pattern);
                Ok(Written::Value)
            };
            if open {
                self.behind(PATTERN, text)?
            } else {
                text(self)?
            };
            return Ok(());
        }
        // One with a single number or boolean is that.
        let only = object.fields.first().and_then(|(_, value)| bare(value, self.mapper));
        match (only_field(&object.class), only) {
            (Some(_), Some(is)) => {
                self.behind(&object.class, |writer| writer.node(is).map(|()| Written::Value))?;
                Ok(())
            }
            _ => {
                let class = shown(&object.class);
                Err(Failure::new(format!("the fields of a {class} are those of Kryo only")))
            }
        }
    }

    fn fields(&mut self, object: &Object) -> Outcome<()> {
        let key = |name| Ok(Key::Text(Cow::Borrowed(name)));
        self.object(&object.class, object.fields.iter().map(|(name, value)| (key(&name[..]), value)))
    }

    fn object<'v>(
        &mut self,
        class: &str,
        fields: impl ExactSizeIterator<Item = (Outcome<Key<'v>>, &'v Value)>,
    ) -> Outcome<()> {
        let typing = if class.is_empty() { Typing::Nowhere } else { self.mapper.typing };
        let count = fields.len() + usize::from(typing.is_property());
        let object = |writer: &mut Self| {
            writer.inside(Group::Object, count, |writer| {
                if typing.is_property() {
                    F::key(writer.out, CLASS);
                    F::text(writer.out, class);
                }
                for (key, value) in fields {
                    key?.write::<F>(writer.out);
                    // Redisson writes a null only where an annotation wants it, but then the payload has it
                    // again.
                    writer.value(value, true, Group::Bare)?;
                }
                Ok(())
            })
        };
        if typing == Typing::Wrapper {
            self.behind(class, object)?
        } else {
            object(self)?
        };
        Ok(())
    }

    /// What has its class in front, unless it is of a final class where no `Object` is declared.
    fn scalar(&mut self, value: &Value, open: bool) -> Outcome<Written> {
        let write = |writer: &mut Self| writer.without_class(value).map(|()| Written::Value);
        if !open && is_last(value, self.mapper) { write(self) } else { self.behind(value.class(), write) }
    }

    fn without_class(&mut self, value: &Value) -> Outcome<()> {
        check_digits(value)?;
        self.bare(value).unwrap_or_else(|| Err(no_text(value, self.mapper)))
    }

    /// Without a class, it is of this group.
    fn array(&mut self, array: &Array, open: bool, group: Group) -> Outcome<Written> {
        let Array { class, elements } = array;
        let content = class.trim_start_matches('[');
        let primitive = class.len() - content.len() == 1 && is_primitive(content);
        let no_element = || Failure::new(format!("no element of {}", shown(class)));
        if &class[..] == "[C" {
            let units = elements.iter().map(|element| match element {
                Value::Character(unit) => Ok(*unit),
                _ => Err(no_element()),
            });
            let text = text_of(&units.collect::<Outcome<Vec<_>>>()?)?;
            let write = |writer: &mut Self| {
                F::text(writer.out, &text);
                Ok(Written::Value)
            };
            return if open { self.behind(class, write) } else { write(self) };
        }
        let write = |writer: &mut Self, group| match primitive {
            true => writer.inside(group, elements.len(), |writer| {
                elements.iter().try_for_each(|element| {
                    F::next(writer.out);
                    match bare(element, writer.mapper) {
                        Some(is) => writer.node(is),
                        None => Err(no_element()),
                    }
                })
            }),
            false => writer.list(group, elements),
        };
        match class.is_empty() || !open && is_last_array(class) {
            true => write(self, group),
            false => self.behind(class, |writer| write(writer, Group::List)),
        }
    }
}

/// Why a scalar is not written.
#[cold]
fn no_text(value: &Value, mapper: &Mapper) -> Failure {
    let class = shown(value.class());
    let time = match value {
        Value::Text(text) => times::write_text(&text.class, &text.text, mapper),
        _ => times::write(value, mapper),
    };
    match time {
        Err(why) if is_time(&class) || class == "java.util.Date" => times::refused(&class, why),
        _ => Failure::new(format!("this {class} has no text")),
    }
}

/// Whether a scalar is of a final class.
fn is_last(value: &Value, mapper: &Mapper) -> bool {
    match value {
        // By Redisson's doing it is not.
        Value::Long(_) => mapper.typing != Typing::Redisson,
        Value::Uuid(_) => is_last_scalar(Scalar::Uuid, mapper.typing),
        Value::BigInteger(_) | Value::BigDecimal(_) | Value::Date(_) => false,
        // Bare it is read from an enum whose constants have no bodies, but as a text.
        Value::Enum(_) => false,
        Value::Text(text) => known(&text.class).is_some_and(|class| class.is_final),
        _ => true,
    }
}

/// The same of one that has a type in [`java`](crate::java).
pub(in crate::jackson) fn is_last_scalar(scalar: Scalar, typing: Typing) -> bool {
    match scalar {
        // By Redisson's doing it is not.
        Scalar::Uuid => typing != Typing::Redisson,
        Scalar::BigInteger | Scalar::BigDecimal | Scalar::Date => false,
        _ => true,
    }
}

/// Whether a letter stands for a primitive type in the class of an array.
fn is_primitive(letter: &str) -> bool {
    matches!(letter, "Z" | "B" | "S" | "C" | "I" | "J" | "F" | "D")
}

/// Whether an array is of a final class.
fn is_last_array(class: &str) -> bool {
    let content = class.trim_start_matches('[');
    is_primitive(content)
        || matches!(
            content,
            "Ljava.lang.String;" | "Ljava.lang.Integer;" | "Ljava.lang.Double;" | "Ljava.lang.Boolean;"
        )
}

/// Whether a value that was read behind its class is written with it.
pub(super) fn is_classed(value: &Value, open: bool, mapper: &Mapper) -> bool {
    match value {
        Value::Null | Value::Boolean(_) | Value::Integer(_) | Value::String(_) | Value::Bare(_) => false,
        Value::Double(value) if value.is_finite() => false,
        Value::Object(_) => true,
        Value::Map(_) | Value::Collection(_) | Value::EnumSet(_) | Value::Classed(_) => true,
        Value::Array(array) => open || !is_last_array(&array.class),
        value => open || !is_last(value, mapper),
    }
}
