//! How a server is named, and that no password is seen.

use std::fs;

use redelay_fixture::Server;

use super::{LONG, Ran, program};

fn fill(server: &Server) {
    let entry = "\x01x\x1c\0\0\0\0\0\0\0{\"card\":\"4111\",\"order\":7.50}";
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{shop:orders}", "4102444800000", entry]);
    server.cmd(["RPUSH", "redisson_delay_queue:{shop:orders}", entry]);
}

#[test]
fn a_password_on_the_command_line_is_refused() {
    let output = program().args(["--url", "redis://looks:secret@127.0.0.1:1", "ls"]).output().unwrap();
    let said = Ran::new(&output).failed(2);
    assert!(
        said.contains("REDELAY_URL") && said.contains("password_command") && !said.contains("secret"),
        "{said}"
    );
}

#[test]
fn a_server_is_named_in_four_ways() {
    let server = Server::start();
    fill(&server);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("redelay")).unwrap();
    let file = folder.path().join("redelay/config.toml");
    fs::write(&file, format!("[default]\nurl = '{}'\n[other]\nurl = 'redis://127.0.0.1:1'", server.url()))
        .unwrap();
    let run = |variables: &[(&str, &str)], words: &[&str]| {
        let mut command = program();
        command.env("XDG_CONFIG_HOME", folder.path()).envs(variables.iter().copied());
        Ran::new(&command.arg(LONG).args(words).output().unwrap())
    };
    let nowhere = "redis://127.0.0.1:1";
    assert!(run(&[], &["ls"]).ok().contains("shop:orders"), "the default profile");
    assert!(run(&[("REDIS_URL", &server.url())], &["ls"]).ok().contains("shop:orders"));
    let both = [("REDIS_URL", nowhere), ("REDELAY_URL", &*server.url())];
    assert!(run(&both, &["ls"]).ok().contains("shop:orders"));
    assert!(run(&[("REDIS_URL", nowhere)], &["ls", "--url", &server.url()]).ok().contains("shop:orders"));
    assert!(run(&[("REDIS_URL", nowhere)], &["--profile", "default", "ls"]).ok().starts_with("default · "));
    // What the profile masks is masked, whichever way the server is named.
    fs::write(&file, "[default]\nurl = 'redis://:hidden@127.0.0.1:1'\nmask = ['card']\n[other]").unwrap();
    for (variables, words) in [
        (&[("REDIS_URL", &*server.url())][..], &["list", "shop:orders"][..]),
        (&[], &["list", "shop:orders", "--url", &server.url()]),
    ] {
        let list = run(variables, words).ok();
        assert!(list.contains("(masked)") && !list.contains("4111"), "{list}");
    }
    let said = run(&[("REDELAY_PROFILE", "live")], &["ls"]).failed(2);
    assert!(said.contains("has no profile `live`; it has `default`, `other`"), "{said}");
    fs::write(&file, "[default]\nurl = 'redis://:secret@x'\npasword = 'secret'").unwrap();
    let said = run(&[], &["ls"]).failed(2);
    assert!(said.contains("config.toml is wrong in line 3: unknown field `pasword`"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn colours_are_for_terminals() {
    let server = Server::start();
    fill(&server);
    let colours = |variables: &[(&str, &str)]| {
        let mut command = program();
        command.env("REDIS_URL", server.url()).envs(variables.iter().copied()).args([LONG, "ls"]);
        Ran::new(&command.output().unwrap()).ok().contains("\x1b[")
    };
    assert!(!colours(&[]), "it is no terminal");
    assert!(colours(&[("CLICOLOR_FORCE", "1")]));
    assert!(!colours(&[("NO_COLOR", "1")]));
}

#[test]
fn a_profile_has_a_login_a_prefix_codecs_and_masks() {
    let server = Server::start();
    fill(&server);
    server.cmd(["RPUSH", "redelay:quarantine:{shop:orders}", "1", "4111"]);
    server.cmd(["ACL", "SETUSER", "looks", "on", ">se cret", "~*", "&*", "+@all"]);
    server.cmd(["ACL", "SETUSER", "default", "off"]);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("redelay")).unwrap();
    let write = |command: &str| {
        let profile = format!(
            "[prod]\nurl = 'redis://127.0.0.1:{}'\nuser = 'looks'\npassword_command = {command}\n\
            name_prefix = 'shop:'\nmask = ['card']\n[prod.codec]\n'ord*' = 'json'",
            server.port()
        );
        fs::write(folder.path().join("redelay/config.toml"), profile).unwrap();
    };
    let run = |words: &[&str]| {
        let mut command = program();
        command.env("XDG_CONFIG_HOME", folder.path()).args(["--profile", "prod", LONG]).args(words);
        Ran::new(&command.output().unwrap())
    };
    for command in ["['printf', 'se cret\\n']", "\"echo 'se cret'\""] {
        write(command);
        let ls = run(&["ls"]).ok();
        assert!(
            ls.starts_with("prod · 127.0.0.1:") && ls.contains("\norders ") && ls.contains(" json "),
            "{ls}"
        );
        let list = run(&["list", "orders"]).ok();
        assert!(list.contains(r#"{"card":"(masked)","order":7.50}"#), "{list}");
        let json = run(&["list", "orders", "--json"]).ok();
        assert!(json.contains(r#""order":7.50"#) && !json.contains("4111"), "{json}");
        assert!(json.contains(r#""payload_hex":null"#), "{json}");
    }
    let quarantine = run(&["list", "orders", "quarantine"]).ok();
    assert!(quarantine.contains("(masked)") && !quarantine.contains("34313131"), "{quarantine}");
    let json = run(&["list", "orders", "quarantine", "--json"]).ok();
    assert!(json.contains(r#""entry_bytes":4,"entry_hex":null"#), "{json}");
    // What a program prints cannot be masked.
    let said = run(&["list", "orders", "--decoder", "cat"]).failed(2);
    assert!(said.contains("the profile masks values"), "{said}");
    let file = folder.path().join("redelay/config.toml");
    let profile = fs::read_to_string(&file).unwrap();
    fs::write(&file, profile.replace("mask", "tls = { ca = '/no/such.pem' }\nmask")).unwrap();
    assert!(run(&["ls"]).failed(2).contains("cannot read /no/such.pem"));
    write("['false']");
    let said = run(&["ls"]).failed(2);
    assert!(said.contains("the password_command of the profile has failed: exit status: 1"), "{said}");
    write("['echo', 'wrong']");
    assert!(run(&["ls"]).failed(4).contains("check the user and password"));
}
