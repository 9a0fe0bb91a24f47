//! The harness works, on both systems, and writes down what it found. How much that is does not matter here.

use std::fs;
use std::process::Command;

use serde_json::Value;

#[test]
fn a_tiny_run_writes_results_a_report_and_plots() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (out, published) = (folder.path().join("out"), folder.path().join("published"));
    let output = Command::new(env!("CARGO_BIN_EXE_redelay-beside"))
        .args(["--tiny", "--only", "take", "--only", "codecs", "--out"])
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
    for folder in [&out, &published] {
        let plot = fs::read_to_string(folder.join("take.svg")).expect("a plot");
        assert!(plot.starts_with("<svg") && plot.contains("Redisson"), "{plot}");
    }
    let readme = fs::read_to_string(published.join("README.md")).expect("a report");
    assert!(
        readme.contains("make bench TINY=1 ONLY=\"take codecs\"") && readme.contains("(take.svg)"),
        "{readme}"
    );
}
