//! A real Prometheus scrapes the exporter, evaluates the alert rules, and answers what the dashboard asks.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use redelay_fixture::{Port, Program, Server, until};
use serde_json::Value;

use super::exporting::{ODD_NAMES, exporter, offer_to_odd_names};
use super::{LONG, fill};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prometheus")
}

fn promtool(words: &[&str]) {
    let output = Command::new("promtool").args(words).current_dir(docs()).output();
    let output = output.expect("promtool; scripts/apt-install.sh prometheus installs it");
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn alert_rules() {
    promtool(&["check", "rules", "alerts.yml"]);
    promtool(&["test", "rules", "alerts-test.yml"]);
    // Each rule has a test.
    let read = |file: &str| std::fs::read_to_string(docs().join(file)).expect("a file");
    let (rules, tests) = (read("alerts.yml"), read("alerts-test.yml"));
    for rule in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname: {rule}\n")), "{rule} has no test");
    }
}

/// A Prometheus, with a folder that ends with it.
struct Prometheus {
    program: Program,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    fn start(target: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let rules = docs().join("alerts.yml");
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
            rule_files: ['{}']\n\
            scrape_configs: [{{job_name: redelay, scrape_timeout: 1s, static_configs: [{{targets: ['{target}']}}]}}]\n",
            rules.canonicalize().expect("the rules").display()
        );
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, config).expect("a configuration");
        let port = Port::reserve().number();
        let words = [
            format!("--config.file={}", file.display()),
            format!("--storage.tsdb.path={}", folder.path().join("data").display()),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let program = Program::start("prometheus", &words, &[]);
        Self { program, port, _folder: folder }
    }

    /// The answer to a question of its interface.
    fn ask(&self, path: &str) -> Option<Value> {
        assert!(self.program.is_running(), "{}", self.program.output());
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }

    /// The series that a query finds, or why it is wrong.
    fn query(&self, query: &str) -> Result<Vec<Value>, String> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let mut answer = Value::Null;
        until("Prometheus answers", || {
            self.ask(&format!("/api/v1/query?query={encoded}")).map(|found| answer = found).is_some()
        });
        match answer["data"]["result"].as_array() {
            Some(series) => Ok(series.clone()),
            None => Err(answer.to_string()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prometheus_scrapes_it() {
    let server = Server::start();
    fill(&server).await;
    offer_to_odd_names(&server);
    let program = exporter(&server.url(), LONG, &["--interval=100ms"]);
    until("it listens", || program.output().contains("/metrics"));
    let output = program.output();
    let target =
        output.split_once("http://").and_then(|(_, rest)| rest.split_once('/')).expect("an address").0;
    let prometheus = Prometheus::start(target);
    until("it has scraped", || prometheus.query("redelay_up == 1").is_ok_and(|found| found.len() == 1));
    until("the scrape is accepted", || prometheus.query("up == 1").is_ok_and(|found| found.len() == 1));
    let mut pending = Vec::new();
    // On a busy machine, a scrape may have failed, and then nothing is known for a moment.
    until("all queues are there", || {
        pending = prometheus.query("redelay_queue_pending").unwrap();
        pending.len() == 1 + ODD_NAMES.len()
    });
    for name in ODD_NAMES.iter().filter_map(|name| std::str::from_utf8(name).ok()) {
        assert!(pending.iter().any(|series| series["metric"]["queue"] == name), "{name:?}: {pending:?}");
    }
    // The rules are loaded, and what is overdue is on its way to an alert.
    until("a rule has fired", || {
        let alerts = prometheus.ask("/api/v1/alerts").unwrap_or_default();
        let alerts = alerts["data"]["alerts"].as_array().cloned().unwrap_or_default();
        alerts.iter().any(|alert| alert["labels"]["alertname"] == "RedelayStandsStill")
    });
    // All that the dashboard asks is understood, and what the exporter has is found.
    let dashboard = std::fs::read_to_string(docs().join("dashboard.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().unwrap();
            let query = query.replace("$queue", ".*").replace("$__rate_interval", "1m");
            let is_of_clients = query.contains("rate(") || query.contains("redelay_client");
            until(&query, || {
                let found = prometheus.query(&query).unwrap_or_else(|why| panic!("{query}: {why}"));
                is_of_clients || !found.is_empty()
            });
            asked += 1;
        }
    }
    assert!(asked > 20, "{asked}");
}
