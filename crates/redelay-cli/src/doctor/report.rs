//! Findings for people and for programs. Pure.

use std::collections::BTreeMap;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::escape;
use crate::human;
use crate::queue::Name;
use crate::table;

use super::codes::{Code, Severity};
use super::finding::{Finding, Names};

/// The widest name in front of a finding.
const LABEL: usize = 30;

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// A server, by its address.
    Server(String),
    /// A queue, by the name that its owners have for it.
    Queue(Vec<u8>),
}

/// A finding, and what it is about.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    pub(crate) subject: Subject,
    pub(crate) finding: Finding,
}

/// A finding as a document.
#[derive(Debug, Serialize)]
pub(crate) struct Document {
    #[serde(flatten)]
    queue: Name,
    server: Option<String>,
    code: Code,
    severity: Severity,
    title: &'static str,
    text: String,
    seen: &'static str,
    fix: Option<String>,
    commands: Vec<String>,
}

impl Reported {
    pub(crate) fn document(&self) -> Document {
        let (queue, server) = match &self.subject {
            Subject::Queue(name) => (Name::new(name), None),
            Subject::Server(address) => (Name::default(), Some(address.clone())),
        };
        let (fix, commands) = self.fix().unzip();
        Document {
            queue,
            server,
            code: self.finding.code,
            severity: self.finding.severity,
            title: self.finding.code.row().title,
            text: self.finding.text.clone(),
            seen: self.finding.code.row().seen,
            fix,
            commands: commands.unwrap_or_default(),
        }
    }

    /// What to do, and the commands in it.
    fn fix(&self) -> Option<(String, Vec<String>)> {
        let names = self.finding.names.as_ref()?;
        let (mut text, mut commands) = (String::new(), Vec::new());
        for (part, is_command) in self.finding.code.row().parts() {
            if !is_command {
                text.push_str(part);
                continue;
            }
            let name = match &self.subject {
                Subject::Queue(name) if part.starts_with("redelay pump") => escape::pattern(name),
                Subject::Queue(name) => name.clone(),
                Subject::Server(_) => Vec::new(),
            };
            let word = |word: &str| {
                let of_word = names.iter().find(|(known, _)| *known == word).map(|(_, keys)| keys);
                match (word, of_word) {
                    ("QUEUE", _) => escape::argument(&name),
                    (_, Some(keys)) => keys.iter().map(|key| escape::word(key)).collect::<Vec<_>>().join(" "),
                    (word, None) => word.to_owned(),
                }
            };
            let has_nul = |(_, keys): &(_, Vec<Vec<u8>>)| keys.iter().flatten().any(|byte| *byte == 0);
            let command = match names.iter().any(has_nul) {
                // No argument of a program has a NUL, and what it reads may have one.
                true => piped(part, names),
                false => part.split(' ').map(word).collect::<Vec<_>>().join(" "),
            };
            text.push_str(&command);
            commands.push(command);
        }
        Some((text, commands))
    }

    fn label(&self) -> String {
        match &self.subject {
            Subject::Server(_) => "server".into(),
            Subject::Queue(name) => table::cut(&escape::bytes(name), LABEL),
        }
    }

    fn text(&self) -> String {
        let finding = &self.finding;
        let is_whole = finding.text.starts_with(finding.code.row().title);
        if is_whole {
            finding.text.clone()
        } else {
            format!("{}: {}", finding.code.row().title, finding.text)
        }
    }
}

/// A command line for what `redis-cli` reads.
fn piped(command: &str, names: &Names) -> String {
    let quoted = |key: &Vec<u8>| {
        let escaped = |byte: &u8| match byte {
            b'"' | b'\\' | b'\'' | 0..b' ' | 0x7f.. => format!("\\x{byte:02x}"),
            byte => char::from(*byte).to_string(),
        };
        format!("\"{}\"", key.iter().map(escaped).collect::<String>())
    };
    let word = |word: &str| match names.iter().find(|(known, _)| *known == word) {
        Some((_, keys)) => keys.iter().map(quoted).collect::<Vec<_>>().join(" "),
        None => word.to_owned(),
    };
    let words: Vec<String> = command.split(' ').skip(1).map(word).collect();
    format!("redis-cli <<< '{}'", words.join(" "))
}

/// Sorts findings, the worst first.
pub(crate) fn sort(reported: &mut [Reported]) {
    reported.sort_by(|one, other| {
        let key = |reported: &Reported| {
            (reported.finding.severity, reported.subject.clone(), reported.finding.code)
        };
        key(one).cmp(&key(other))
    });
}

/// The lines for people. With several servers, each is named.
pub(crate) fn lines(reported: &[Reported], servers: usize) -> Vec<String> {
    let mut rows: Vec<(String, &Reported)> = Vec::new();
    // What is unknown of all queues alike is one line.
    let mut alike: BTreeMap<(Code, &str), usize> = BTreeMap::new();
    for one in reported {
        let is_unknown =
            one.finding.severity == Severity::Unknown && matches!(one.subject, Subject::Queue(_));
        let count = alike.entry((one.finding.code, &one.finding.text)).or_default();
        *count += 1;
        if !is_unknown || *count == 1 {
            let label = match &one.subject {
                Subject::Server(address) if servers > 1 => table::cut(&escape::text(address), LABEL),
                _ => one.label(),
            };
            rows.push((label, one));
        }
    }
    for (label, one) in &mut rows {
        let count = alike[&(one.finding.code, &*one.finding.text)];
        if one.finding.severity == Severity::Unknown && matches!(one.subject, Subject::Queue(_)) && count > 1
        {
            *label = human::counted(count as u64, "queue", "queues");
        }
    }
    let width = rows.iter().map(|(label, _)| label.width()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (label, one) in rows {
        let severity = one.finding.severity;
        let style = style(severity);
        let space = " ".repeat(width - label.width());
        let (letter, code) = (severity.letter(), one.finding.code);
        lines.push(format!("{label}{space}  {style}{letter}{style:#} {code}  {}", escape::text(&one.text())));
        if let Some((fix, _)) = one.fix() {
            lines.push(format!("{}{}", " ".repeat(width + 9), escape::text(&fix)));
        }
    }
    lines
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Error => AnsiColor::Red.on_default().bold(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Unknown => AnsiColor::Cyan.on_default(),
        Severity::Information => Style::new(),
    }
}

/// The last line, without the time.
pub(crate) fn summary(queues: usize, reported: &[Reported]) -> String {
    let count = |severity| reported.iter().filter(|one| one.finding.severity == severity).count() as u64;
    let counts = [
        (count(Severity::Error), "error", "errors"),
        (count(Severity::Warning), "warning", "warnings"),
        (count(Severity::Unknown), "unknown", "unknown"),
        (count(Severity::Information), "information", "information"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| human::counted(count, one, many))
        .collect();
    let found = if counts.is_empty() { "nothing is wrong".into() } else { counts.join(", ") };
    format!("{}: {found}", human::counted(queues as u64, "queue", "queues"))
}

/// Whether the answer is negative.
pub(crate) fn is_negative(reported: &[Reported]) -> bool {
    reported.iter().any(|one| one.finding.severity <= Severity::Warning)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::codes::ROWS;
    use super::*;

    fn of_queue(name: &[u8], finding: Finding) -> Reported {
        Reported { subject: Subject::Queue(name.to_vec()), finding }
    }

    #[test]
    fn a_fix_has_the_names_of_its_queue() {
        let (fix, commands) = of_queue(b"refunds", Finding::new(Code::Q02, "")).fix().unwrap();
        assert_eq!(
            fix,
            "Redisson loses a wake-up now and then. Now: redelay pump --once refunds. From now on: redelay pump refunds. If the name in Java is in braces, write the braces, too"
        );
        assert_eq!(commands, ["redelay pump --once refunds", "redelay pump refunds"]);
        let keys = vec![b"redelay:control:{q}".to_vec(), b"\xffKEYS it's".to_vec()];
        let gone = Finding::new(Code::K04, "").name("KEYS", keys);
        let (_, commands) = of_queue(b"q", gone).fix().unwrap();
        assert_eq!(commands, [r"redis-cli UNLINK 'redelay:control:{q}' $'\xffKEYS it\'s'"]);
        let binary = Finding::new(Code::K02, "").name("KEYS", vec![b"a\0'\"\xff".to_vec(), b"KEYS".to_vec()]);
        let (_, commands) = of_queue(b"q", binary).fix().unwrap();
        assert_eq!(commands, [r#"redis-cli <<< 'UNLINK "a\x00\x27\x22\xff" "KEYS"'"#]);
        let (_, commands) = of_queue(b"a b*", Finding::new(Code::Q11, "")).fix().unwrap();
        assert_eq!(commands, [r"redelay pump --once 'a b\*'"]);
        let (_, commands) = of_queue(b"-x", Finding::new(Code::Q11, "")).fix().unwrap();
        assert_eq!(commands, ["redelay pump --once -- '-x'"]);
    }

    #[test]
    fn the_lines_are_aligned_and_escaped() {
        let mut reported = vec![
            of_queue(b"a\x1b[2J", Finding::new(Code::Q34, "2 messages were given up")),
            of_queue(b"refunds", Finding::new(Code::S14, "x").without_fix()),
            of_queue(b"orders", Finding::new(Code::S14, "x").without_fix()),
            Reported {
                subject: Subject::Server("redis-1:6379".into()),
                finding: Finding::new(Code::S02, "81 bytes of 100"),
            },
        ];
        sort(&mut reported);
        let lines = lines(&reported, 1);
        let plain: Vec<String> =
            lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert_eq!(plain[0], "server    W S02  the memory is nearly full: 81 bytes of 100");
        assert_eq!(plain[1], "                 Offers will be refused. Give it more memory");
        assert_eq!(plain[2], "2 queues  ? S14  CONFIG does not exist: x");
        assert!(plain[3].starts_with("a\\x1b[2J  I Q34  dead letters: 2 messages"), "{plain:?}");
        assert_eq!(summary(14, &reported), "14 queues: 1 warning, 2 unknown, 1 information");
        assert_eq!(summary(1, &[]), "1 queue: nothing is wrong");
        assert!(is_negative(&reported) && !is_negative(&reported[1..]));
    }

    #[test]
    fn documents_say_everything() {
        let json = |reported: &Reported| serde_json::to_value(reported.document()).unwrap();
        let found = json(&of_queue(b"q", Finding::new(Code::Q01, "37 entries")));
        assert_eq!((&found["queue"], &found["code"]), (&"q".into(), &"Q01".into()));
        assert_eq!((&found["severity"], &found["server"]), (&"error".into(), &Value::Null));
        assert_eq!(found["commands"][0], "redelay pump --once q");
        let subject = Subject::Server("redis-1:6379".into());
        let found = json(&Reported { subject, finding: Finding::new(Code::S01, "allkeys-lru") });
        assert_eq!((&found["server"], found.get("queue")), (&"redis-1:6379".into(), Some(&Value::Null)));
    }

    #[test]
    fn the_table_is_in_order_and_its_names_are_known() {
        let codes: Vec<String> = ROWS.iter().map(|row| row.code.to_string()).collect();
        assert!(codes.windows(2).all(|pair| pair[0][..1] != pair[1][..1] || pair[0] < pair[1]), "{codes:?}");
        for row in ROWS {
            assert_eq!(row.code.row().code, row.code);
            assert!(row.fix.matches('`').count() % 2 == 0 && (1..=3).contains(&row.looks), "{}", row.code);
            assert!(!row.hides.contains(&row.code), "{}", row.code);
        }
    }
}
