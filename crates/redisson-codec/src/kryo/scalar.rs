//! The classes that have a type of their own in [`java`](crate::java).

use super::input::Input;
use super::output::Output;
use crate::java::known_classes::{Class, ClassKind, Layout, Scalar, TextPart};
use crate::java::{
    BigDecimal, BigInteger, Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime, Uuid, Value,
};
use crate::kryo::failure::{Failure, Outcome};

/// The byte that a value of the class is if it is null; for other classes there is a byte in front that
/// tells.
pub(super) fn null(class: &Class) -> Option<u8> {
    match class.kind {
        ClassKind::Collection(Layout::Plain | Layout::Sorted | Layout::Immutable)
        | ClassKind::Map(Layout::Plain | Layout::Sorted | Layout::Immutable)
        | ClassKind::Scalar(Scalar::BigInteger | Scalar::BigDecimal) => Some(0),
        ClassKind::Enum(_) | ClassKind::Text([TextPart::Class]) => Some(0),
        ClassKind::Text(_) if class.name.starts_with("java.lang.") || class.name == "java.util.Currency" => {
            Some(0x80)
        }
        _ => None,
    }
}

/// The value, whose class is known.
pub(super) fn read(input: &mut Input<'_>, class: &Class) -> Outcome<Value> {
    let start = input.at;
    let ClassKind::Scalar(scalar) = class.kind else {
        return Err(Failure::new(format!("the layout of `{}` is not known", class.name)));
    };
    let value = match scalar {
        Scalar::BigInteger => Some(Value::BigInteger(big(input)?)),
        Scalar::BigDecimal => {
            let unscaled = big(input)?;
            Some(Value::BigDecimal(BigDecimal::new(unscaled, input.int()?)))
        }
        Scalar::Uuid => {
            let [high, low] = [u64::from_le_bytes(input.array()?), u64::from_le_bytes(input.array()?)];
            Some(Value::Uuid(Uuid::from_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())))
        }
        Scalar::Date => Some(Value::Date(Date::from_millis(input.varlong()? as i64))),
        Scalar::Instant => {
            let seconds = input.varlong()? as i64;
            Instant::new(seconds, input.varint()?).map(Value::Instant)
        }
        Scalar::Duration => {
            let seconds = i64::from_le_bytes(input.array()?);
            Duration::new(seconds, input.varint()?).map(Value::Duration)
        }
        Scalar::LocalDate => date(input)?.map(Value::LocalDate),
        Scalar::LocalTime => time(input)?.map(Value::LocalTime),
        Scalar::LocalDateTime => {
            let (date, time) = (date(input)?, time(input)?);
            date.zip(time).map(|(date, time)| Value::LocalDateTime(LocalDateTime::new(date, time)))
        }
    };
    value.ok_or_else(|| {
        Failure::new(format!("expected a `{}` at offset {start}, found what is none", class.name))
    })
}

/// Longer numbers have no use, and to print one takes more than linear time: 50 ms for one of these.
const MAX_BIG: usize = 1 << 16;

fn big(input: &mut Input<'_>) -> Outcome<BigInteger> {
    let start = input.at;
    let length = input.varint()?;
    let count = input.count(length)?;
    if count > MAX_BIG {
        return Err(Failure::new(format!(
            "expected a number of at most {MAX_BIG} bytes at offset {start}, found {count}"
        )));
    }
    Ok(BigInteger::from_be_bytes(input.take(count)?))
}

pub(super) fn date(input: &mut Input<'_>) -> Outcome<Option<LocalDate>> {
    let year = input.varint()? as i32;
    let [month, day] = input.array()?;
    Ok(LocalDate::new(year, month, day))
}

/// The last part that is not 0 has its bits flipped, so that those behind it are left out. Nanoseconds need
/// no mark.
pub(super) fn time(input: &mut Input<'_>) -> Outcome<Option<LocalTime>> {
    let mut parts = [0; 3];
    for part in &mut parts {
        let byte = input.byte()?;
        if byte >= 0x80 {
            *part = !byte;
            return Ok(LocalTime::new(parts[0], parts[1], parts[2], 0));
        }
        *part = byte;
    }
    Ok(LocalTime::new(parts[0], parts[1], parts[2], input.varint()?))
}

/// Writes a value of one of these classes, and says whether it was one.
pub(super) fn write(output: &mut Output, value: &Value) -> Outcome<bool> {
    match value {
        Value::BigInteger(value) => write_big(output, value)?,
        Value::BigDecimal(value) => {
            write_big(output, value.unscaled())?;
            output.int(value.scale());
        }
        Value::Uuid(value) => {
            let number = u128::from_be_bytes(value.into_bytes());
            output.raw(&((number >> 64) as u64).to_le_bytes());
            output.raw(&(number as u64).to_le_bytes());
        }
        Value::Date(value) => output.varlong(value.millis() as u64),
        Value::Instant(value) => {
            output.varlong(value.seconds() as u64);
            output.varint(value.nanos());
        }
        Value::Duration(value) => {
            output.raw(&value.seconds().to_le_bytes());
            output.varint(value.nanos());
        }
        Value::LocalDate(value) => write_date(output, *value),
        Value::LocalTime(value) => write_time(output, *value),
        Value::LocalDateTime(value) => {
            write_date(output, value.date());
            write_time(output, value.time());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn write_big(output: &mut Output, value: &BigInteger) -> Outcome<()> {
    let bytes = value.as_be_bytes();
    if bytes.len() > MAX_BIG {
        return Err(Failure::new(format!(
            "a number of {} bytes, where {MAX_BIG} are read again",
            bytes.len()
        )));
    }
    output.varint(Output::length(bytes.len())?);
    output.raw(bytes);
    Ok(())
}

pub(super) fn write_date(output: &mut Output, date: LocalDate) {
    output.varint(date.year() as u32);
    output.raw(&[date.month(), date.day()]);
}

pub(super) fn write_time(output: &mut Output, time: LocalTime) {
    match (time.hour(), time.minute(), time.second(), time.nano()) {
        (hour, 0, 0, 0) => output.byte(!hour),
        (hour, minute, 0, 0) => output.raw(&[hour, !minute]),
        (hour, minute, second, 0) => output.raw(&[hour, minute, !second]),
        (hour, minute, second, nano) => {
            output.raw(&[hour, minute, second]);
            output.varint(nano);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::java::known_classes::class;

    #[track_caller]
    fn both_ways(value: Value, bytes: &[u8]) {
        let mut output = Output::take();
        assert!(write(&mut output, &value).unwrap());
        assert_eq!(output.finish().unwrap(), bytes);
        let class = crate::java::known_classes::known(value.class()).unwrap();
        assert_eq!(read(&mut Input::new(bytes), class).unwrap(), value);
    }

    #[test]
    fn as_kryo_writes_them() {
        both_ways(BigInteger::from(256).into(), b"\x03\x01\x00");
        both_ways(BigDecimal::new(123_456_789, 4).into(), b"\x05\x07\x5b\xcd\x15\x08");
        both_ways(Date::from_millis(-1).into(), &[0xff; 9]);
        both_ways(LocalTime::new(0, 0, 0, 0).unwrap().into(), b"\xff");
        both_ways(LocalTime::new(23, 1, 0, 0).unwrap().into(), b"\x17\xfe");
        both_ways(LocalTime::new(23, 0, 59, 0).unwrap().into(), b"\x17\x00\xc4");
        both_ways(LocalTime::new(1, 2, 3, 4).unwrap().into(), b"\x01\x02\x03\x04");
        both_ways(LocalDate::new(-1, 12, 31).unwrap().into(), b"\xff\xff\xff\xff\x0f\x0c\x1f");
    }

    #[test]
    fn what_is_none() {
        for (name, bytes) in [
            ("java.time.LocalDate", &b"\xe8\x0f\x02\x1e"[..]),
            ("java.time.LocalTime", b"\x18\x00\x00\x01"),
            ("java.time.Instant", b"\x00\x80\x94\xeb\xdc\x03"),
        ] {
            let failure = read(&mut Input::new(bytes), class(name)).unwrap_err();
            assert_eq!(failure.to_string(), format!("expected a `{name}` at offset 0, found what is none"));
        }
    }
}
