//! A finding, and which looks agree on it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::codes::{Code, Severity};
use super::look::Refused;

/// What names in a fix stand for: keys.
pub(crate) type Names = Vec<(&'static str, Vec<Vec<u8>>)>;

/// What is wrong with a queue or a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    /// What is wrong, with numbers.
    pub(crate) text: String,
    /// What the names in its fix stand for. `None` if what the table says does not help here.
    pub(crate) names: Option<Names>,
    /// What it is about. Looks agree if they have one of these in common.
    evidence: Option<BTreeSet<u64>>,
    /// A number that has not become smaller from one look to the next.
    measure: Option<u64>,
}

impl Finding {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.row().severity,
            text: text.into(),
            names: Some(Vec::new()),
            evidence: None,
            measure: None,
        }
    }

    /// That the server has not said it.
    pub(crate) fn unknown(code: Code, text: impl Into<String>) -> Self {
        Self { severity: Severity::Unknown, names: None, ..Self::new(code, text) }
    }

    /// What this name in its fix stands for.
    pub(crate) fn name(mut self, name: &'static str, keys: Vec<Vec<u8>>) -> Self {
        self.names.get_or_insert_default().push((name, keys));
        self
    }

    pub(crate) fn without_fix(mut self) -> Self {
        self.names = None;
        self
    }

    pub(crate) fn evidence(mut self, evidence: impl IntoIterator<Item = u64>) -> Self {
        self.evidence = Some(evidence.into_iter().collect());
        self
    }

    pub(crate) fn measure(mut self, measure: Option<u64>) -> Self {
        self.measure = measure;
        self
    }

    /// Whether it is the same as that of an earlier look.
    fn agrees(&self, earlier: &Self) -> bool {
        let is_same = match (&self.evidence, &earlier.evidence) {
            (Some(one), Some(other)) => !one.is_disjoint(other),
            _ => true,
        };
        let has_shrunk = self.measure.zip(earlier.measure).is_some_and(|(now, was)| now < was);
        is_same && !has_shrunk
    }
}

/// What the looks at one queue or server say together.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// The findings that enough looks agree on: each code says how many it needs.
    pub(crate) findings: Vec<Finding>,
    /// What needs another look.
    pub(crate) open: Vec<Code>,
}

/// What looks agree on: the findings of each, the first one first. What another finding may have caused is
/// left out.
pub(crate) fn agreed(mut looks: Vec<Vec<Finding>>) -> Judgement {
    let count = looks.len();
    let Some(last) = looks.pop() else { return Judgement::default() };
    let held = |finding: &Finding| {
        finding.code.row().looks == 1
            || looks.iter().all(|earlier| {
                earlier.iter().any(|earlier| earlier.code == finding.code && finding.agrees(earlier))
            })
    };
    let held: Vec<Finding> = last.into_iter().filter(held).collect();
    let causes: Vec<Code> = held.iter().map(|finding| finding.code).collect();
    let is_caused = |code: Code| causes.iter().any(|cause| cause.row().hides.contains(&code));
    let held =
        held.into_iter().filter(|finding| finding.severity == Severity::Unknown || !is_caused(finding.code));
    let (findings, open): (Vec<_>, Vec<_>) = held.partition(|finding| finding.code.row().looks <= count);
    Judgement { findings, open: open.into_iter().map(|finding| finding.code).collect() }
}

/// Findings of what was refused: one for each missing permission, or for each of the server's words.
pub(crate) fn unknown(refused: &[Refused]) -> Vec<Finding> {
    // The server's words differ from call to call.
    let mut grouped: BTreeMap<&str, (&Refused, BTreeSet<Code>)> = BTreeMap::new();
    for refused in refused {
        let cause = refused.right.as_ref().unwrap_or(&refused.why);
        grouped.entry(cause).or_insert((refused, BTreeSet::new())).1.insert(refused.code);
    }
    let finding = |(first, codes): (&Refused, BTreeSet<Code>)| {
        let mut codes = codes.into_iter();
        let code = codes.next()?;
        let others: Vec<String> = codes.map(|code| code.to_string()).collect();
        let others =
            if others.is_empty() { String::new() } else { format!(", and with it {}", others.join(", ")) };
        let why = match &first.right {
            Some(right) if right.starts_with('+') && !right.contains(' ') => {
                let command = right.trim_start_matches('+').replace('|', " ").to_uppercase();
                format!("the user may not run {command} ({right})")
            }
            Some(right) => format!("{}; the missing permission: {right}", first.why),
            None => first.why.clone(),
        };
        let text = format!("{}: unknown{others}: {why}", code.row().title);
        Some(Finding::unknown(code, text))
    };
    grouped.into_values().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(judgement: &Judgement) -> Vec<Code> {
        judgement.findings.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn what_a_moving_queue_shows_for_a_moment_needs_several_looks() {
        let lost = |entries: &[u64]| Finding::new(Code::Q05, "").evidence(entries.iter().copied());
        let one = agreed(vec![vec![lost(&[1, 2])]]);
        assert_eq!((codes(&one), &one.open[..]), (vec![], &[Code::Q05][..]));
        let two = agreed(vec![vec![lost(&[1, 2])], vec![lost(&[2, 3])]]);
        assert_eq!((codes(&two), &two.open[..]), (vec![Code::Q05], &[][..]));
        for gone in [vec![lost(&[3])], vec![]] {
            let two = agreed(vec![vec![lost(&[1, 2])], gone]);
            assert!(two.findings.is_empty() && two.open.is_empty());
        }
        let still = || vec![Finding::new(Code::Q02, "").evidence([7])];
        assert_eq!(agreed(vec![still(), still()]).open, [Code::Q02]);
        assert_eq!(codes(&agreed(vec![still(), still(), still()])), [Code::Q02]);
        assert_eq!(codes(&agreed(vec![still(), vec![], still()])), []);
    }

    #[test]
    fn what_becomes_less_is_taken() {
        let ready = |count| vec![Finding::new(Code::Q24, "").measure(Some(count))];
        assert_eq!(codes(&agreed(vec![ready(100), ready(100), ready(107)])), [Code::Q24]);
        assert_eq!(codes(&agreed(vec![ready(108), ready(108), ready(107)])), []);
    }

    #[test]
    fn a_cause_hides_its_consequences() {
        let of = |codes: &[Code]| codes.iter().map(|code| Finding::new(*code, "")).collect::<Vec<_>>();
        let look = || of(&[Code::Q02, Code::Q03, Code::Q11]);
        assert_eq!(codes(&agreed(vec![look(), look()])), [Code::Q11]);
        assert_eq!(agreed(vec![look()]).open, []);
        // Without the cause, they are found.
        let look = || of(&[Code::Q01, Code::Q03]);
        assert_eq!(codes(&agreed(vec![look(), look()])), [Code::Q01]);
    }

    #[test]
    fn what_is_refused_is_unknown() {
        let refused = |code, right: &str| Refused { code, why: "NOPERM".into(), right: Some(right.into()) };
        let found = unknown(&[
            refused(Code::Q12, "+zcount"),
            refused(Code::Q01, "+pubsub|numsub"),
            refused(Code::Q11, "+zcount"),
        ]);
        let texts: Vec<&str> = found.iter().map(|finding| &*finding.text).collect();
        assert_eq!(
            texts,
            [
                "no client transfers: unknown: the user may not run PUBSUB NUMSUB (+pubsub|numsub)",
                "a negative due time: unknown, and with it Q12: the user may not run ZCOUNT (+zcount)",
            ]
        );
        assert!(found.iter().all(|finding| finding.severity == Severity::Unknown));
        let of_keys = |code, why: &str| Refused { why: why.into(), ..refused(code, "~*") };
        let found = unknown(&[of_keys(Code::Q12, "NOPERM"), of_keys(Code::Q01, "it failed: NOPERM")]);
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            finding.text,
            "no client transfers: unknown, and with it Q12: NOPERM; the missing permission: ~*"
        );
    }
}
