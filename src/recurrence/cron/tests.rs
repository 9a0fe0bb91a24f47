use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn instant(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// Runs on the wall after a time.
fn runs(text: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let cron = Cron::new(text, zone).expect("a cron expression");
    let mut at = instant(after);
    let mut next = || {
        at = cron.next_instant(at)?;
        Some(at.to_zoned_datetime(cron.zone.clone()).strftime("%d %H:%M %z").to_string())
    };
    (0..count).map_while(|_| next()).collect()
}

/// Case 58.
#[test]
fn clocks_that_are_set_forward_and_back() {
    let berlin = "Europe/Berlin";
    let chicago = "America/Chicago";
    let lord_howe = "Australia/Lord_Howe";
    for (zone, after, text, expected) in [
        // 2:00 becomes 3:00.
        (berlin, "2025-03-29T12:00:00Z", "30 2 * * *", ["30 03:00 +0200", "31 02:30 +0200"].as_slice()),
        (berlin, "2025-03-29T12:00:00Z", "0 3 * * *", &["30 03:00 +0200", "31 03:00 +0200"]),
        (berlin, "2025-03-29T12:00:00Z", "15,45 2 * * *", &["30 03:00 +0200", "31 02:15 +0200"]),
        (berlin, "2025-03-29T12:00:00Z", "30 2 30 3 *", &["30 03:00 +0200", "30 02:30 +0200"]),
        (berlin, "2025-03-29T12:00:00Z", "* 2 * * *", &["31 02:00 +0200", "31 02:01 +0200"]),
        (berlin, "2025-03-30T00:30:00Z", "*/30 * * * *", &["30 03:00 +0200", "30 03:30 +0200"]),
        (berlin, "2025-03-30T00:30:00Z", "@hourly", &["30 03:00 +0200", "30 04:00 +0200"]),
        // 3:00 becomes 2:00.
        (berlin, "2025-10-25T12:00:00Z", "30 2 * * *", &["26 02:30 +0200", "27 02:30 +0100"]),
        (berlin, "2025-10-26T01:10:00Z", "30 2 * * *", &["27 02:30 +0100"]),
        (berlin, "2025-10-25T12:00:00Z", "0 3 * * *", &["26 03:00 +0100", "27 03:00 +0100"]),
        (
            berlin,
            "2025-10-25T23:45:00Z",
            "*/30 * * * *",
            &["26 02:00 +0200", "26 02:30 +0200", "26 02:00 +0100", "26 02:30 +0100", "26 03:00 +0100"],
        ),
        (berlin, "2025-10-26T00:40:00Z", "30 * * * *", &["26 02:30 +0100", "26 03:30 +0100"]),
        // 2:00 becomes 3:00; 2:00 becomes 1:00.
        (chicago, "2025-03-08T12:00:00Z", "30 2 * * *", &["09 03:00 -0500", "10 02:30 -0500"]),
        (chicago, "2025-03-09T07:40:00Z", "*/20 * * * *", &["09 03:00 -0500", "09 03:20 -0500"]),
        (chicago, "2025-11-01T12:00:00Z", "30 1 * * *", &["02 01:30 -0500", "03 01:30 -0600"]),
        (chicago, "2025-11-01T12:00:00Z", "0 2 * * *", &["02 02:00 -0600", "03 02:00 -0600"]),
        (
            chicago,
            "2025-11-02T06:30:00Z",
            "0,30 * * * *",
            &["02 01:00 -0600", "02 01:30 -0600", "02 02:00 -0600"],
        ),
        // Half an hour: 2:00 becomes 2:30; 2:00 becomes 1:30.
        (lord_howe, "2025-10-04T12:00:00Z", "15 2 * * *", &["05 02:30 +1100", "06 02:15 +1100"]),
        (lord_howe, "2025-10-04T12:00:00Z", "45 2 * * *", &["05 02:45 +1100", "06 02:45 +1100"]),
        (lord_howe, "2025-10-04T15:15:00Z", "*/15 * * * *", &["05 02:30 +1100", "05 02:45 +1100"]),
        (lord_howe, "2025-04-05T12:00:00Z", "45 1 * * *", &["06 01:45 +1100", "07 01:45 +1030"]),
        (
            lord_howe,
            "2025-04-05T14:30:00Z",
            "*/15 * * * *",
            &["06 01:45 +1100", "06 01:30 +1030", "06 01:45 +1030", "06 02:00 +1030"],
        ),
    ] {
        assert_eq!(runs(text, zone, after, expected.len()), expected, "`{text}` in {zone} after {after}");
    }
}

/// Looks at each minute of three days around each change of the clocks, in place of looking for the next
/// match.
#[test]
fn the_next_run_is_that_of_a_search_minute_by_minute() {
    let minute = SignedDuration::from_mins(1);
    for (zone, begin) in [
        ("Europe/Berlin", "2025-03-28T23:00:00Z"),
        ("Europe/Berlin", "2025-10-24T22:00:00Z"),
        ("America/Chicago", "2025-03-08T06:00:00Z"),
        ("America/Chicago", "2025-11-01T05:00:00Z"),
        ("Australia/Lord_Howe", "2025-10-03T13:30:00Z"),
        ("Australia/Lord_Howe", "2025-04-04T13:00:00Z"),
        ("UTC", "2025-03-01T00:00:00Z"),
    ] {
        let begin = instant(begin);
        let end = begin + SignedDuration::from_hours(72);
        let minutes = || (0..).map(|n| begin + minute * n).take_while(|at| *at <= end);
        for text in [
            "30 2 * * *",
            "0,20,40 1-3 * * *",
            "*/25 * * * *",
            "* 2 * * *",
            "7 * * * *",
            "0 3 * * 0",
            "45 1 * * *",
        ] {
            let cron = Cron::new(text, zone).expect("a cron expression");
            let local = |at: Timestamp| at.to_zoned_datetime(cron.zone.clone()).datetime();
            let is_match = |local: DateTime| {
                let local = Wall(local.to_zoned_datetime(TimeZone::UTC).expect("a time"));
                cron.cron.is_time_matching(&local).expect("a time")
            };
            let expected: BTreeSet<_> = if cron.is_interval {
                minutes().filter(|at| is_match(local(*at))).collect()
            } else {
                let on_the_wall =
                    (0..).map(|n| local(begin) + minute * n).take_while(|wall| *wall <= local(end));
                let first = |wall| minutes().find(|at| local(*at) >= wall);
                on_the_wall.filter(|wall| is_match(*wall)).filter_map(first).collect()
            };
            for at in minutes().flat_map(|at| [at, at + SignedDuration::from_secs(31)]) {
                let Some(next) = expected.iter().find(|run| **run > at) else { break };
                assert_eq!(cron.next_instant(at), Some(*next), "`{text}` in {zone} after {at}");
            }
        }
    }
}

#[test]
fn seconds_years_and_the_letters_of_days() {
    let after = "2025-12-30T23:59:58Z";
    for (text, expected) in [
        ("* * * * * *", "30 23:59 +0000"),
        ("0 0 L * *", "31 00:00 +0000"),
        ("0 0 15W * *", "15 00:00 +0000"),
        ("0 0 * * 5#2", "09 00:00 +0000"),
        ("0 0 * * FRI", "02 00:00 +0000"),
        ("0 0 0 1 1 * 2030", "01 00:00 +0000"),
        ("0 0 29 2 *", "29 00:00 +0000"),
        ("@daily", "31 00:00 +0000"),
    ] {
        assert_eq!(runs(text, "UTC", after, 1), [expected], "{text}");
    }
    for sunday in ["0L", "7L", "SUNL", "0#L", "7#L", "SUN#L"] {
        let text = format!("0 1 * * {sunday}");
        assert_eq!(runs(&text, "UTC", "2026-01-01T00:00:00Z", 1), ["25 01:00 +0000"], "{text}");
    }
    let both = runs("0 1 * * 1#1,7L", "UTC", "2026-01-01T00:00:00Z", 2);
    assert_eq!(both, ["05 01:00 +0000", "25 01:00 +0000"]);
    let range = runs("0 1 * * 5-7#L", "UTC", "2026-01-01T00:00:00Z", 3);
    assert_eq!(range, ["25 01:00 +0000", "30 01:00 +0000", "31 01:00 +0000"]);
    assert_eq!(runs("0 0 0 1 1 * 2026", "UTC", after, 3).len(), 1);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, zone, expected) in [
        (
            "61 * * * *",
            "UTC",
            "field 1 of the cron expression `61 * * * *`, `61` (minutes), is out of range; use 0 to 59",
        ),
        (
            "0 25 * * *",
            "UTC",
            "field 2 of the cron expression `0 25 * * *`, `25` (hours), is out of range; use 0 to 23",
        ),
        (
            "* 0 25 * * *",
            "UTC",
            "field 3 of the cron expression `* 0 25 * * *`, `25` (hours), is out of range; use 0 to 23",
        ),
        (
            "0 0 * * 8",
            "UTC",
            "field 5 of the cron expression `0 0 * * 8`, `8` (day of the week), is out of range; use 0 to 7 or SUN to SAT",
        ),
        (
            "0 9-8 * * *",
            "UTC",
            "field 2 of the cron expression `0 9-8 * * *`, `9-8` (hours), is out of range, or backwards; use 0 to 23",
        ),
        ("*/0 * * * *", "UTC", "field 1 of the cron expression `*/0 * * * *`, `*/0` (minutes), is wrong: "),
        (
            "a b c d e",
            "UTC",
            "field 1 of the cron expression `a b c d e`, `a` (minutes), has a character that means nothing there; use 0 to 59, ",
        ),
        ("* * * *", "UTC", "the number of fields in the cron expression `* * * *` is 4: "),
        ("", "UTC", "the number of fields in the cron expression `` is 0: "),
        ("@often", "UTC", "there is no cron expression `@often`: use @yearly, "),
        (
            "@every 5m",
            "UTC",
            "there is no cron expression `@every 5m`: use @yearly, @monthly, @weekly, @daily or @hourly; for an interval, call every()",
        ),
        (
            "0 0 30 2 *",
            "UTC",
            "the cron expression `0 0 30 2 *` never comes: no date has day of the month `30`, month `2`, day of the week `*`",
        ),
        (
            "0 0 0 1 1 * 1969",
            "UTC",
            "the cron expression `0 0 0 1 1 * 1969` never comes: no date has day of the month `1`, month `1`, day of the week `*`, year `1969`",
        ),
        ("0 0 * * *", "Europe/Berln", "there is no time zone `Europe/Berln`: "),
        ("0 0 * * *", "", "there is no time zone ``: "),
    ] {
        let Err(why) = Cron::new(text, zone) else { panic!("`{text}` in {zone} is accepted") };
        assert!(why.starts_with(expected), "{why}");
    }
}

proptest! {
    /// A record on the server may have any text.
    #[test]
    fn any_text_is_read_or_refused(text in "[ *0-9,/#?+@LWA-Z-]{0,20}", any: String) {
        for text in [text, any] {
            if let Ok(cron) = Cron::new(&text, "Europe/Berlin") {
                let first = cron.next(1_700_000_000_000);
                prop_assert!(first.is_none_or(|first| first > 1_700_000_000_000));
            }
        }
    }
}
