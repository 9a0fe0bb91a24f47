//! Figures and names that several pages have, compared with where they come from.

use std::collections::BTreeSet;

const BENCHMARKS: &str = include_str!("../../docs/benchmarks/README.md");
const README: &str = include_str!("../../README.md");
const MIGRATING: &str = include_str!("../../docs/migrating.md");
const OBSERVABILITY: &str = include_str!("../../docs/observability.md");
const OPERATE: &str = include_str!("../../docs/operate.md");
const RECIPES: &str = include_str!("../../docs/recipes.md");
const SCALING: &str = include_str!("../../docs/scaling.md");

/// The cells of the row that begins with this cell, behind a heading.
fn row(page: &'static str, heading: &str, first: &str) -> Vec<&'static str> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1).expect("the section");
    let row = section.lines().find(|line| line.starts_with(&format!("| {first} |"))).expect("the row");
    row.trim_matches(['|', ' ']).split(" | ").collect()
}

/// A guide says this. Line breaks do not matter.
#[track_caller]
fn says(page: &str, words: &str) {
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(words), "the guide does not say: {words}");
}

#[test]
fn a_measurement_has_one_figure() {
    let late: f64 = {
        let cell = row(BENCHMARKS, "lateness", "p99, 1 process, quiet")[1];
        cell.split(' ').next().and_then(|median| median.parse().ok()).expect("a number")
    };
    says(README, &format!("99 of 100 messages within {late:.1} ms of"));
    says(README, &format!("| lateness, 99th percentile | {late:.1} ms instead of"));
    says(MIGRATING, &format!("| late by {late:.1} ms (99th percentile"));

    let held = |first| {
        let cell = row(BENCHMARKS, "jobs that are held", first)[2];
        cell.rsplit_once(", ").and_then(|(_, ratio)| ratio.strip_suffix(" ×")).expect("a ratio")
    };
    let (one, many) = ("receive and acknowledge, 1 in flight", "receive and acknowledge, 64 in flight");
    says(RECIPES, &format!("an offer takes {} times as much", held("offer")));
    says(RECIPES, &format!("{} times; {} times where 64 share a call", held(one), held(many)));
}

/// A worker on one queue, as "Predicting the CPU time" has it.
#[test]
fn small_systems_on_paper_need_what_is_predicted() {
    let predicted = |rate: &str, column: usize| -> f64 {
        row(SCALING, "Predicting the CPU time", rate)[column].parse().expect("a time")
    };
    let middle = |column| (predicted("50", column) + predicted("200", column)) / 2.0;
    let thousand = |column| predicted("1,000", column);
    for (pending, rate, [client, server]) in
        [("10^5", 100.0, [1, 2].map(middle)), ("10^6", 1_000.0, [1, 2].map(thousand))]
    {
        let cells = row(SCALING, "Sizing on paper", pending);
        let cores = |micros: f64| micros * rate / 1e6;
        assert_eq!(cells[7], format!("{:.0} %", cores(server * 2.0) * 100.0), "{pending}");
        let clients: f64 = cells[8].parse().expect("a number");
        assert!((clients / cores(client * 1.5) - 1.0).abs() < 0.05, "{pending}: {clients}");
    }
}

#[test]
fn features_are_named_where_they_are_needed() {
    let manifest = include_str!("../../Cargo.toml");
    let features = manifest.split("\n[features]\n").nth(1).and_then(|rest| rest.split("\n[").next());
    let traces = features.expect("features").lines().filter_map(|line| line.split_once(" = "));
    let traces: Vec<_> = traces.map(|(name, _)| name).filter(|name| name.contains("opentelemetry")).collect();
    assert_eq!(traces.len(), 1);
    says(OBSERVABILITY, &format!("With the feature `{}`", traces[0]));
    let of_java =
        [include_str!("../../docs/from-redisson.md"), include_str!("../../docs/java-classes.md"), MIGRATING];
    of_java.iter().for_each(|page| says(page, r#"`redelay = { version = "0.1", features = ["java"] }`"#));
}

/// The names that begin with `redelay_` in a text.
fn metrics(text: &'static str) -> BTreeSet<&'static str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("redelay_")).collect()
}

#[test]
fn alert_rules_need_the_exporter_or_the_crate() {
    let exported = metrics(include_str!("../../crates/redelay-cli/src/commands/exporter/gauges.rs"));
    let reported = metrics(include_str!("../../crates/redelay-metrics/src/facade.rs"));
    let (mut of_exporter, mut of_crate) = (Vec::new(), Vec::new());
    for rule in include_str!("../../docs/prometheus/alerts.yml").split("- alert: ").skip(1) {
        let (name, rest) = rule.split_once('\n').expect("a name");
        let needed = metrics(rest.split("labels:").next().expect("its expression"));
        assert!(!needed.is_empty(), "{name}");
        match (needed.is_subset(&exported), needed.is_subset(&reported)) {
            (true, false) => of_exporter.push(format!("`{name}`")),
            (false, true) => of_crate.push(format!("`{name}`")),
            (is_exported, _) => assert!(is_exported, "{name} needs both"),
        }
    }
    let listed = |names: &[String]| {
        let (last, others) = names.split_last().expect("a rule");
        format!("{} and {last} need", others.join(", "))
    };
    says(OPERATE, &format!("The rules {} the exporter.", listed(&of_exporter)));
    says(OPERATE, &format!(". {} `redelay-metrics`.", listed(&of_crate)));
}
