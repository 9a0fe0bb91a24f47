//! Texts that Kryo has another form for, part by part: times with a zone, years, periods, locales, classes.

use super::input::{ClassRef, Input};
use super::output::Output;
use super::scalar;
use crate::java::known_classes::{Class, ClassKind, TextPart, locale_text};
use crate::java::time::parts::{
    MAX_OFFSET, month_day_text, offset_text, period_text, year_month_text, year_text,
};
use crate::java::{LocalDate, LocalDateTime, LocalTime};
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::numbered::Numbered;

/// The text of this class, which is not null.
pub(super) fn read(input: &mut Input<'_>, class: &Class) -> Outcome<String> {
    let start = input.at;
    let mut text = String::new();
    for part in parts(class)? {
        let Some(read) = read_part(input, *part)? else {
            return Err(Failure::new(format!(
                "expected a `{}` at offset {start}, found what is none",
                class.name
            )));
        };
        match text.is_empty() {
            true => text = read,
            false => text.push_str(&read),
        }
    }
    Ok(text)
}

/// Writes the text of this class.
pub(super) fn write(output: &mut Output, class: &Class, text: &str) -> Outcome<()> {
    let mut rest = text;
    for part in parts(class)? {
        let (text, behind) = split(*part, rest);
        if write_part(output, *part, text).is_none() {
            return Err(Failure::new(format!(
                "expected the text of a `{}`, such as {}",
                class.name,
                like(class)
            )));
        }
        rest = behind;
    }
    Ok(())
}

fn parts(class: &Class) -> Outcome<&'static [TextPart]> {
    match class.kind {
        ClassKind::Text(parts) => Ok(parts),
        _ => Err(Failure::new(format!("`{}` is not a text class whose layout is known", class.name))),
    }
}

/// For messages.
fn like(class: &Class) -> &'static str {
    match class.kind {
        ClassKind::Text([TextPart::DateTime, TextPart::Zone]) => "2024-02-29T12:34:56+01:00[Europe/Berlin]",
        ClassKind::Text([TextPart::DateTime, ..]) => "2024-02-29T12:34:56+01:00",
        ClassKind::Text([TextPart::Time, ..]) => "12:34:56+01:00",
        ClassKind::Text([TextPart::Offset]) => "+01:00",
        ClassKind::Text([TextPart::Year]) => "2024",
        ClassKind::Text([TextPart::YearMonth]) => "2024-02",
        ClassKind::Text([TextPart::MonthDay]) => "--02-29",
        ClassKind::Text([TextPart::Period]) => "P1Y2M3D",
        _ => "any",
    }
}

/// The text of the part, and what is left for those behind it.
fn split(part: TextPart, text: &str) -> (&str, &str) {
    let start = match part {
        TextPart::DateTime => text.find('T').map_or(text.len(), |at| at + 1),
        TextPart::Time => 0,
        _ => return (text, ""),
    };
    let clock = |c: char| c.is_ascii_digit() || c == ':' || c == '.';
    let end = text[start..].find(|c| !clock(c)).map_or(text.len(), |at| start + at);
    text.split_at(end)
}

/// `None`: it is none.
fn read_part(input: &mut Input<'_>, part: TextPart) -> Outcome<Option<String>> {
    Ok(match part {
        TextPart::Rest => Some(input.some_text()?.into_owned()),
        TextPart::DateTime => {
            let (date, time) = (scalar::date(input)?, scalar::time(input)?);
            date.zip(time).map(|(date, time)| LocalDateTime::new(date, time).to_string())
        }
        TextPart::Time => scalar::time(input)?.map(|time| time.to_string()),
        TextPart::Offset => match input.byte()? as i8 {
            127 => offset_text(i32::from_le_bytes(input.array()?)),
            quarters => offset_text(i32::from(quarters) * 900),
        },
        TextPart::Zone => {
            let zone = input.some_text()?;
            Some(if is_offset(&zone) { zone.into_owned() } else { format!("[{zone}]") })
        }
        TextPart::Year => {
            let year = input.varint()? as i32;
            year_text(year)
        }
        TextPart::YearMonth => {
            let year = input.varint()? as i32;
            year_month_text(year, input.byte()?)
        }
        TextPart::MonthDay => {
            let [month, day] = input.array()?;
            month_day_text(month, day)
        }
        TextPart::Period => {
            let [years, months, days] = [input.varint()?, input.varint()?, input.varint()?];
            Some(period_text([years, months, days].map(|count| count as i32)))
        }
        TextPart::Locale => {
            let [language, country] = [input.some_text()?, input.some_text()?];
            locale_text(&language, &country, &input.some_text()?)
        }
        TextPart::Class => match input.class()? {
            None => None,
            Some(ClassRef::Numbered(class)) if class != Numbered::String && input.boolean()? => {
                Some(primitive(class).to_owned())
            }
            Some(class) => Some(input.kept_class_name(class)?),
        },
    })
}

/// `None`: it is none.
fn write_part(output: &mut Output, part: TextPart, text: &str) -> Option<()> {
    match part {
        TextPart::Rest => output.text(text),
        TextPart::DateTime => {
            let at: LocalDateTime = text.parse().ok()?;
            scalar::write_date(output, at.date());
            scalar::write_time(output, at.time());
        }
        TextPart::Time => scalar::write_time(output, text.parse::<LocalTime>().ok()?),
        TextPart::Offset => {
            let seconds = offset(text)?;
            match seconds % 900 {
                0 => output.byte((seconds / 900) as u8),
                _ => {
                    output.byte(127);
                    output.raw(&seconds.to_le_bytes());
                }
            }
        }
        TextPart::Zone => match text.split_once('[') {
            // The offset in front follows from the zone, and Kryo does not write it.
            Some((in_front, zone)) if in_front.is_empty() || offset(in_front).is_some() => {
                output.text(zone.strip_suffix(']')?);
            }
            Some(_) => return None,
            None => output.text(&offset_text(offset(text)?)?),
        },
        TextPart::Year => output.varint(format!("{text}-01-01").parse::<LocalDate>().ok()?.year() as u32),
        TextPart::YearMonth => {
            let date: LocalDate = format!("{text}-01").parse().ok()?;
            output.varint(date.year() as u32);
            output.byte(date.month());
        }
        TextPart::MonthDay => {
            let date: LocalDate = format!("{LEAP}-{}", text.strip_prefix("--")?).parse().ok()?;
            output.raw(&[date.month(), date.day()]);
        }
        TextPart::Period => period(text)?.into_iter().for_each(|count| output.varint(count as u32)),
        TextPart::Locale => {
            let mut parts = text.splitn(3, '_');
            (0..3).for_each(|_| output.text(parts.next().unwrap_or("")));
        }
        TextPart::Class => match PRIMITIVES.into_iter().find(|class| primitive(*class) == text) {
            Some(class) => {
                output.numbered(class);
                output.byte(1);
            }
            None => match PRIMITIVES.into_iter().find(|class| class.name() == text) {
                Some(class) => {
                    output.numbered(class);
                    output.byte(0);
                }
                None if text == Numbered::String.name() => output.numbered(Numbered::String),
                None => output.class(text.to_owned()),
            },
        },
    }
    Some(())
}

/// A year that has all days.
const LEAP: i32 = 2000;

fn offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let negative = match text.as_bytes().first()? {
        b'+' => false,
        b'-' => true,
        _ => return None,
    };
    let time = text[1..].parse::<LocalTime>().ok().filter(|time| time.nano() == 0)?;
    let seconds = i32::from(time.hour()) * 3600 + i32::from(time.minute()) * 60 + i32::from(time.second());
    (seconds <= MAX_OFFSET).then_some(if negative { -seconds } else { seconds })
}

/// Whether a zone is one of those that have no other name.
fn is_offset(zone: &str) -> bool {
    offset(zone).and_then(offset_text).as_deref() == Some(zone)
}

const UNITS: [char; 3] = ['Y', 'M', 'D'];

fn period(text: &str) -> Option<[i32; 3]> {
    let mut rest = text.strip_prefix('P').filter(|rest| !rest.is_empty())?;
    let mut counts = [0; 3];
    for (count, unit) in counts.iter_mut().zip(UNITS) {
        if let Some((number, behind)) = rest.split_once(unit) {
            *count = number.parse().ok()?;
            rest = behind;
        }
    }
    rest.is_empty().then_some(counts)
}

/// The boxes, which stand for their primitive types as well.
const PRIMITIVES: [Numbered; 8] = [
    Numbered::Integer,
    Numbered::Float,
    Numbered::Boolean,
    Numbered::Byte,
    Numbered::Character,
    Numbered::Short,
    Numbered::Long,
    Numbered::Double,
];

fn primitive(class: Numbered) -> &'static str {
    match class {
        Numbered::Integer => "int",
        Numbered::Float => "float",
        Numbered::Boolean => "boolean",
        Numbered::Byte => "byte",
        Numbered::Character => "char",
        Numbered::Short => "short",
        Numbered::Long => "long",
        Numbered::Double => "double",
        Numbered::String => "java.lang.String",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::java::known_classes::class;

    fn written(name: &'static str, text: &str) -> Result<Vec<u8>, String> {
        let mut output = Output::take();
        write(&mut output, class(name), text).map_err(|failure| failure.to_string())?;
        output.finish().map_err(|failure| failure.to_string())
    }

    #[track_caller]
    fn both_ways(name: &'static str, text: &str) {
        let bytes = written(name, text).unwrap();
        let mut input = Input::new(&bytes);
        assert_eq!(read(&mut input, class(name)).unwrap(), text, "{bytes:02x?}");
        assert_eq!(input.left(), 0);
    }

    #[test]
    fn as_java_prints_them() {
        for text in ["2024-02-29T12:34:56.789Z", "-0044-03-15T00:00+18:00", "+12024-01-01T00:00-00:00:01"] {
            both_ways("java.time.OffsetDateTime", text);
            both_ways("java.time.ZonedDateTime", text);
        }
        for text in ["2024-02-29T12:34[Europe/Berlin]", "2024-02-29T12:34[UTC]", "2024-02-29T12:34[+1:00]"] {
            both_ways("java.time.ZonedDateTime", text);
        }
        for text in ["P0D", "P1Y-2M3D", "P-2147483648M", "P40D"] {
            both_ways("java.time.Period", text);
        }
        for text in ["", "de", "de_DE", "_CH", "de__1996", "ca_ES_VALENCIA_X"] {
            both_ways("java.util.Locale", text);
        }
        for text in ["int", "java.lang.Integer", "java.lang.String", "java.lang.Runnable", "[I"] {
            both_ways("java.lang.Class", text);
        }
        both_ways("java.time.OffsetTime", "12:34:56+01:00");
        both_ways("java.time.Year", "-0044");
        both_ways("java.time.Year", "+999999999");
        both_ways("java.time.YearMonth", "2024-02");
        both_ways("java.time.MonthDay", "--02-29");
    }

    #[test]
    fn an_offset_in_front_of_a_zone_is_not_written() {
        let zoned = |text| written("java.time.ZonedDateTime", text);
        assert_eq!(zoned("2024-02-29T12:34+01:00[Europe/Berlin]"), zoned("2024-02-29T12:34[Europe/Berlin]"));
    }

    #[test]
    fn what_is_none() {
        for (name, texts) in [
            (
                "java.time.OffsetDateTime",
                &["", "T", "2024-02-29", "2024-02-29T12:34", "2024-02-29T12:34[UTC]"][..],
            ),
            (
                "java.time.ZonedDateTime",
                &["", "2024-02-29T12:34", "2024-02-29T12:34[UTC", "2024-02-29T12:34x[UTC]"],
            ),
            ("java.time.OffsetTime", &["", "Z", "12:34", "12:34+1:00", "12:34+é"]),
            ("java.time.ZoneOffset", &["", "é", "+", "+19:00", "01:00", "+18:00:01", "+01:00:00.5"]),
            ("java.time.Year", &["", "2024-01", "12345678901", "é"]),
            ("java.time.YearMonth", &["", "2024", "2024-13", "2024-1"]),
            ("java.time.MonthDay", &["", "02-29", "--02-30", "--2-3"]),
            ("java.time.Period", &["", "P", "1D", "P1", "P1D2M", "PxD", "P99999999999D", "P1W"]),
        ] {
            for text in texts {
                let why = written(name, text).unwrap_err();
                assert!(
                    why.starts_with(&format!("expected the text of a `{name}`, such as ")),
                    "{text}: {why}"
                );
            }
        }
        for (name, bytes) in [
            ("java.time.ZoneOffset", &b"\x49"[..]),
            ("java.time.ZoneOffset", b"\x7f\xff\xff\xff\x7f"),
            ("java.time.Year", b"\xff\xff\xff\xff\x07"),
            ("java.time.YearMonth", b"\x00\x0d"),
            ("java.time.MonthDay", b"\x02\x1e"),
            ("java.util.Locale", b"\x83a_\x81\x81"),
        ] {
            let why = read(&mut Input::new(bytes), class(name)).unwrap_err().to_string();
            assert_eq!(why, format!("expected a `{name}` at offset 0, found what is none"));
        }
    }

    proptest! {
        #[test]
        fn periods_and_offsets_come_back(years: i32, months: i32, days: i32, seconds in -MAX_OFFSET..=MAX_OFFSET) {
            let counts = [years, months, days];
            prop_assert_eq!(period(&period_text(counts)), Some(counts));
            prop_assert_eq!(offset(&offset_text(seconds).unwrap()), Some(seconds));
        }

        #[test]
        fn any_text(text: String) {
            for name in ["java.time.ZonedDateTime", "java.time.OffsetTime", "java.time.Period", "java.time.Year"] {
                let _ = written(name, &text);
            }
        }
    }
}
