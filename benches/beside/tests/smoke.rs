//! The harness works, on both systems, and writes down what it found. How much that is does not matter here.
//! `make soak` runs what takes minutes of a processor.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

#[test]
fn a_tiny_run_writes_results_a_report_and_plots() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (out, published) = (folder.path().join("out"), folder.path().join("published"));
    let output = Command::new(env!("CARGO_BIN_EXE_redelay-beside"))
        .args(["--tiny", "--only", "take", "--only", "codecs", "--only", "alternatives", "--out"])
        .arg(&out)
        .arg("--publish")
        .arg(&published)
        .output()
        .expect("the harness");
    let [report, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{errors}");

    let results = fs::read_to_string(published.join("results.json")).expect("results");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let tables = results["tables"].as_array().expect("tables");
    assert_eq!(
        tables.iter().map(|table| table["name"].as_str()).collect::<Vec<_>>(),
        [Some("take"), Some("codecs")]
    );
    let rows = tables.iter().flat_map(|table| table["rows"].as_array().expect("rows"));
    for row in rows {
        let what = row["what"].as_str().expect("a name");
        assert!(report.contains(what), "{what} is not in the report: {report}");
        for system in ["redelay", "redisson"] {
            let measured = row["rounds"][0][system].as_f64();
            assert!(measured.is_some_and(|measured| measured > 0.0), "{what}, {system}: {measured:?}");
        }
    }
    let rows = results["contests"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 9);
    for row in rows {
        let columns = row["columns"].as_array().expect("columns");
        assert!(report.contains(row["what"].as_str().expect("a name")), "{report}");
        assert!(columns.len() == 4 && columns.iter().all(|column| column["rounds"][0].is_number()), "{row}");
    }
    for folder in [&out, &published] {
        let plot = fs::read_to_string(folder.join("take.svg")).expect("a plot");
        assert!(plot.starts_with("<svg") && plot.contains("Redisson"), "{plot}");
    }
    let readme = fs::read_to_string(published.join("README.md")).expect("a report");
    assert!(
        readme.contains("make bench TINY=1 ONLY=\"take codecs alternatives\"")
            && readme.contains("src=\"take.svg\"")
            && readme.contains("take-dark.svg"),
        "{readme}"
    );
}

/// The scripts that other clients call are those of today.
#[test]
#[ignore = "long, make soak"]
fn a_tiny_run_of_offers_drains_and_one_caller_measures_everything() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_redelay-beside"))
        .args(["--tiny", "--only", "offer", "--only", "drain", "--only", "ladder", "--out"])
        .arg(folder.path())
        .output()
        .expect("the harness");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = fs::read_to_string(folder.path().join("results.json")).expect("results");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let array = |value: &Value| value.as_array().expect("an array").clone();
    let limits: Vec<_> =
        array(&results["tables"][0]["rows"]).iter().flat_map(|row| array(&row["limit"])).collect();
    assert!(!limits.is_empty() && limits.iter().all(|limit| limit.as_f64() > Some(0.0)), "{limits:?}");
    let rows = array(&results["contests"][0]["rows"]);
    let names = rows.iter().filter_map(|row| row["what"].as_str());
    let names: Vec<_> = names.filter(|name| !name.contains(": ")).collect();
    assert_eq!(names, ["offer", "take", "take, 8 takers", "receive and ack", "worker, 1 at a time"]);
    for row in &rows {
        for column in array(&row["columns"]) {
            let measured = column["rounds"][0].as_f64();
            assert!(measured.is_some_and(|measured| measured > 0.0), "{row}");
        }
    }
}

/// BullMQ and asynq are measured, or the report says why not.
#[test]
#[ignore = "long, make soak"]
fn a_tiny_run_of_what_is_acknowledged_fills_every_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut harness = Command::new(env!("CARGO_BIN_EXE_redelay-beside"));
    let wanted = [
        "receive",
        "receive-end-to-end",
        "delayed-jobs",
        "retries",
        "idle-workers",
        "idle-receivers",
        "heartbeats",
        "recovery",
        "memory",
        "beside-java",
        "many",
    ];
    for name in wanted {
        harness.args(["--only", name]);
    }
    let output = harness.args(["--tiny", "--out"]).arg(folder.path()).output().expect("the harness");
    let [report, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{errors}");
    let results = fs::read_to_string(folder.path().join("results.json")).expect("results");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let array = |value: &Value| value.as_array().expect("an array").clone();
    for (name, system) in [("BullMQ", "bull_mq"), ("asynq", "asynq")] {
        let is_present = array(&results["peers"]["present"]).contains(&system.into());
        assert!(is_present || report.contains(&format!("{name} is skipped: ")), "{report}");
    }
    let present = array(&results["peers"]["present"]).len();
    let contests = array(&results["contests"]);
    assert_eq!(contests.len(), wanted.len());
    for contest in contests {
        let name = contest["name"].as_str().expect("a name");
        assert!(report.contains(&format!("## {name}")), "{report}");
        let columns = match name {
            "acknowledged receive" => 3 + present,
            "recovery" | "idle receivers" | "very much at once" => 1,
            "beside Java's takers" => 2,
            _ => 1 + present,
        };
        for row in array(&contest["rows"]) {
            assert_eq!(array(&row["columns"]).len(), columns, "{row}");
            for column in array(&row["columns"]) {
                assert!(column["rounds"][0].is_number(), "{name}: {row}");
            }
        }
    }
    let plot = fs::read_to_string(folder.path().join("acknowledged.svg")).expect("a plot");
    assert!(plot.starts_with("<svg") && plot.contains("by hand"), "{plot}");
}

/// A table and two plots for each of the things that grow, with every system that is there.
#[test]
#[ignore = "long, make soak"]
fn a_tiny_run_of_what_a_message_costs_fills_every_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_redelay-beside"))
        .args(["--tiny", "--only", "cost", "--out"])
        .arg(folder.path())
        .output()
        .expect("the harness");
    let [report, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{errors}");
    let results = fs::read_to_string(folder.path().join("results.json")).expect("results");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let array = |value: &Value| value.as_array().expect("an array").clone();
    let present = array(&results["peers"]["present"]).len();
    let contests = array(&results["contests"]);
    let names: Vec<_> = contests.iter().filter_map(|contest| contest["name"].as_str()).collect();
    let axes = ["rate", "queues", "pending", "payload", "processes"];
    assert_eq!(names, axes.map(|axis| format!("cost by {axis}")));
    for contest in &contests {
        for row in array(&contest["rows"]) {
            assert_eq!(array(&row["columns"]).len(), 2 + present, "{row}");
            for column in array(&row["columns"]) {
                let measured = column["rounds"][0].as_f64();
                assert!(measured.is_some_and(|measured| measured > 0.0), "{row}");
            }
        }
    }
    for file in
        axes.iter().flat_map(|axis| ["client", "server"].map(|side| format!("cost-by-{axis}-{side}.svg")))
    {
        let plot = fs::read_to_string(folder.path().join(&file)).expect("a plot");
        assert!(
            plot.starts_with("<svg") && plot.contains("Redisson") && report.contains(&file),
            "{file}: {plot}"
        );
    }
}

/// A cluster beside one server: both systems where both can do the work, and redelay by the number of
/// partitions.
#[test]
#[ignore = "long, make soak"]
fn a_tiny_run_on_a_cluster_fills_every_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_redelay-beside"))
        .args(["--tiny", "--only", "cluster", "--out"])
        .arg(folder.path())
        .output()
        .expect("the harness");
    let [report, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{errors}");
    let results = fs::read_to_string(folder.path().join("results.json")).expect("results");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    let array = |value: &Value| value.as_array().expect("an array").clone();
    let contests = array(&results["contests"]);
    let names: Vec<_> = contests.iter().map(|contest| contest["name"].as_str()).collect();
    assert_eq!(names, [Some("cluster"), Some("partitions, 3 masters"), Some("partitions, one server")]);
    for contest in &contests {
        for row in array(&contest["rows"]) {
            let what = row["what"].as_str().expect("a name");
            let columns = match contest["name"].as_str() {
                Some("cluster") if what.starts_with("offers") || what.split(':').next() == Some("takes") => 6,
                Some("cluster") => 3,
                _ => 2,
            };
            assert_eq!(array(&row["columns"]).len(), columns, "{row}");
            for column in array(&row["columns"]) {
                assert!(column["rounds"][0].is_number(), "{row}");
            }
        }
    }
    let goal = "| cluster: offers: CPU of client and servers | redelay, 3 masters: at most 1.3 times that of redelay, one server |";
    assert!(report.contains(goal), "{report}");
}

#[test]
fn a_turn_is_repeated_when_its_worker_dies() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut harness = Command::new(env!("CARGO_BIN_EXE_redelay-beside"))
        .args(["--tiny", "--only", "codecs", "--out"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the harness");
    // The first worker on Redisson, which is always in the middle of a turn.
    let worker = child_with(&mut harness, "redelay.bench.Bench");
    assert!(Command::new("kill").args(["-KILL", &worker]).status().expect("kill").success());
    let output = harness.wait_with_output().expect("the harness");
    let [report, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("this turn is repeated, because the worker on Redisson"), "{errors}");
    let repeated =
        "One turn failed and was repeated with new processes:\n\n* tuning: `the worker on Redisson";
    assert!(report.contains(repeated), "{report}");
}

/// The id of a child process with this word in its command line.
fn child_with(harness: &mut Child, word: &str) -> String {
    let id = harness.id();
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(120), "no worker with {word} has started");
        assert!(harness.try_wait().expect("a child").is_none(), "the harness has ended");
        // Each thread of the harness may have started children.
        let threads = fs::read_dir(format!("/proc/{id}/task")).expect("a running process");
        let children =
            threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
        let found = children.collect::<Vec<_>>().join(" ");
        let is_wanted = |child: &&str| {
            let command = fs::read(Path::new("/proc").join(child).join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains(word)
        };
        if let Some(child) = found.split_whitespace().find(is_wanted) {
            return child.to_owned();
        }
        sleep(Duration::from_millis(5));
    }
}
