//! [`Pattern`]: a pattern of Java's `DateTimeFormatter`, of its most frequent letters.

#![cfg_attr(
    not(feature = "json-jackson"),
    allow(dead_code, unreachable_pub, reason = "only that codec has settings")
)]

use std::fmt::Write as _;

use crate::CodecError;
use crate::java::{LocalDate, LocalDateTime, LocalTime};

#[derive(Clone, Debug)]
pub(super) struct Pattern(Vec<Item>);

#[derive(Clone, Debug)]
enum Item {
    Literal(String),
    /// A letter, and how often it comes.
    Part(char, usize),
}

/// What is known so far of a text.
struct Parts {
    year: i32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    nano: u32,
}

impl Pattern {
    /// A pattern that has at least these letters.
    pub(super) fn new(pattern: &str, letters: &str) -> Result<Self, CodecError> {
        let wrong = |why: String| CodecError::new(format!("the pattern `{pattern}` cannot be used: {why}"));
        let mut items = Vec::new();
        let mut rest = pattern.chars().peekable();
        while let Some(letter) = rest.next() {
            if letter == '\'' {
                let mut literal = String::new();
                loop {
                    match rest.next() {
                        Some('\'') if rest.peek() == Some(&'\'') => literal.extend(rest.next()),
                        Some('\'') => break,
                        Some(other) => literal.push(other),
                        None => return Err(wrong("a `'` is missing".to_owned())),
                    }
                }
                // Two of them are one.
                items.push(Item::Literal(if literal.is_empty() { "'".to_owned() } else { literal }));
                continue;
            }
            if !letter.is_ascii_alphabetic() {
                if "[]{}#".contains(letter) {
                    return Err(wrong(format!("`{letter}` is not supported")));
                }
                items.push(Item::Literal(letter.to_string()));
                continue;
            }
            let mut count = 1;
            while rest.next_if_eq(&letter).is_some() {
                count += 1;
            }
            let letter = if letter == 'u' { 'y' } else { letter };
            let supported = match letter {
                'y' => count == 4,
                'M' | 'd' | 'H' | 'm' | 's' => count <= 2,
                'S' => count <= 9,
                _ => false,
            };
            if !supported {
                return Err(wrong(format!("`{}` is not supported", letter.to_string().repeat(count))));
            }
            items.push(Item::Part(letter, count));
        }
        let has = |letter| items.iter().any(|item| matches!(item, Item::Part(part, _) if *part == letter));
        if let Some(missing) = letters.chars().find(|letter| !has(*letter)) {
            return Err(wrong(format!("it has no `{missing}`")));
        }
        Ok(Self(items))
    }

    /// `None` for a year that Java writes in another era.
    fn print(&self, date: Option<LocalDate>, time: Option<LocalTime>) -> Option<String> {
        let mut text = String::new();
        let day = |part: fn(LocalDate) -> u8| date.map(|date| u32::from(part(date)));
        let clock = |part: fn(LocalTime) -> u8| time.map(|time| u32::from(part(time)));
        for item in &self.0 {
            let (number, width) = match *item {
                Item::Literal(ref literal) => {
                    text.push_str(literal);
                    continue;
                }
                Item::Part('y', _) => {
                    let year = date?.year();
                    match year {
                        10_000.. => write!(text, "+{year}").ok()?,
                        1..10_000 => write!(text, "{year:04}").ok()?,
                        _ => return None,
                    }
                    continue;
                }
                Item::Part('S', width) => {
                    text.push_str(&format!("{:09}", time?.nano())[..width]);
                    continue;
                }
                Item::Part(letter, width) => {
                    let number = match letter {
                        'M' => day(LocalDate::month),
                        'd' => day(LocalDate::day),
                        'H' => clock(LocalTime::hour),
                        'm' => clock(LocalTime::minute),
                        _ => clock(LocalTime::second),
                    };
                    (number?, width)
                }
            };
            write!(text, "{number:0width$}").ok()?;
        }
        Some(text)
    }

    fn parse(&self, text: &str) -> Option<Parts> {
        let mut parts = Parts { year: 0, month: 1, day: 1, hour: 0, minute: 0, second: 0, nano: 0 };
        let mut rest = text;
        for item in &self.0 {
            let (letter, width) = match item {
                Item::Literal(literal) => {
                    rest = rest.strip_prefix(&literal[..])?;
                    continue;
                }
                Item::Part(letter, width) => (*letter, *width),
            };
            let signed = letter == 'y' && rest.starts_with('+');
            if signed {
                rest = &rest[1..];
            }
            let most = match (letter, width) {
                ('y', _) if signed => 9,
                ('y' | 'S', width) => width,
                _ => 2,
            };
            let least = if signed { 5 } else { width };
            let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
            if digits < least {
                return None;
            }
            let number: u32 = rest[..digits].parse().ok()?;
            rest = &rest[digits..];
            match letter {
                'y' => parts.year = number.try_into().ok()?,
                'M' => parts.month = number,
                'd' => parts.day = number,
                'H' => parts.hour = number,
                'm' => parts.minute = number,
                's' => parts.second = number,
                _ => parts.nano = number * 10u32.pow(9 - width as u32),
            }
        }
        rest.is_empty().then_some(parts)
    }

    pub(super) fn print_date_time(&self, value: LocalDateTime) -> Option<String> {
        self.print(Some(value.date()), Some(value.time()))
    }

    pub(super) fn print_date(&self, value: LocalDate) -> Option<String> {
        self.print(Some(value), None)
    }

    pub(super) fn print_time(&self, value: LocalTime) -> Option<String> {
        self.print(None, Some(value))
    }

    pub(super) fn parse_date_time(&self, text: &str) -> Option<LocalDateTime> {
        let parts = self.parse(text)?;
        Some(LocalDateTime::new(parts.date()?, parts.time()?))
    }

    pub(super) fn parse_date(&self, text: &str) -> Option<LocalDate> {
        self.parse(text)?.date()
    }

    pub(super) fn parse_time(&self, text: &str) -> Option<LocalTime> {
        self.parse(text)?.time()
    }
}

impl Parts {
    fn date(&self) -> Option<LocalDate> {
        LocalDate::new(self.year, self.month.try_into().ok()?, self.day.try_into().ok()?)
    }

    fn time(&self) -> Option<LocalTime> {
        let [hour, minute, second] = [self.hour, self.minute, self.second].map(u8::try_from);
        LocalTime::new(hour.ok()?, minute.ok()?, second.ok()?, self.nano)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        let at: LocalDateTime = "2024-02-09T01:34:56.789".parse().unwrap();
        for (pattern, text) in [
            ("yyyy-MM-dd HH:mm:ss.SSS", "2024-02-09 01:34:56.789"),
            ("d.M.uuuu H'h'm''s S", "9.2.2024 1h34'56 7"),
            ("yyyyMMddHHmmssSSS", "20240209013456789"),
        ] {
            let pattern = Pattern::new(pattern, "yMdH").unwrap();
            assert_eq!(pattern.print_date_time(at).unwrap(), text);
            let again = pattern.parse_date_time(text).unwrap();
            assert_eq!(pattern.print_date_time(again).unwrap(), text);
        }
        let day = Pattern::new("yyyy-MM-dd", "yMd").unwrap();
        let far = LocalDate::new(10_000, 1, 2).unwrap();
        assert_eq!(day.print_date(far).as_deref(), Some("+10000-01-02"));
        assert_eq!(day.parse_date("+10000-01-02"), Some(far));
        assert_eq!(day.print_date(LocalDate::new(0, 1, 2).unwrap()), None);
        for text in ["", "2024-1-02", "2024-01-02 ", "2024-02-30", "24-01-02", "+2024-01-02", "2024-01-0é"] {
            assert_eq!(day.parse_date(text), None, "{text}");
        }
    }

    #[test]
    fn patterns_that_are_none() {
        for (pattern, why) in [
            ("yyyy-MM", "it has no `d`"),
            ("yy-MM-dd", "`yy` is not supported"),
            ("yyyy-MMM-dd", "`MMM` is not supported"),
            ("yyyy-MM-dd E", "`E` is not supported"),
            ("yyyy-MM-dd['x']", "`[` is not supported"),
            ("yyyy-MM-dd'x", "a `'` is missing"),
        ] {
            let error = Pattern::new(pattern, "yMd").unwrap_err().to_string();
            assert_eq!(error, format!("the pattern `{pattern}` cannot be used: {why}"));
        }
    }
}
