# What there is to do here: `make help`. CI runs the same targets (.ci/run).
.DEFAULT_GOAL := help
SHELL := /bin/sh

EXAMPLES := $(sort $(notdir $(basename $(wildcard examples/*.rs))))
# Examples that are packages.
PROGRAMS := redelay-cancel-unless-paid redelay-demo redisson-dump
# What others use in programs.
LIBRARIES := redelay redisson-codec redelay-testing redelay-metrics
# The names in [features] of a Cargo.toml, without `default` and the internal ones, which begin with an underscore.
features_of = $(shell sed -n '/^\[features\]/,/^\[dependencies\]/s/^\([a-z0-9-]*\) *=.*/\1/p' $(1) | grep -vx default)
CODEC_FEATURES := $(call features_of,crates/redisson-codec/Cargo.toml)
# Those that redelay's own code asks for; the others only select codecs. `full` is several of them; lint has all.
OWN_FEATURES = $(filter-out full,$(sort $(shell grep -rhoE 'feature = "[a-z0-9-]+"' src --include='*.rs' | cut -d '"' -f 2)))
# Besides the server on PATH, the integration tests run with these.
OTHER_SERVERS := redis-6.2 valkey-9.1
# A package is made of what is committed. With changes that are not: make package PACKAGE_FLAGS=--allow-dirty
PACKAGE_FLAGS ?=

# An example that hangs must not hang all.
TIMEOUT := $(if $(shell command -v timeout),timeout 600)

# How long `make soak` runs.
SECONDS ?= 600

# How many `make fuzz-replies` mutates on each kind of connection.
REPLIES ?= 1000000

# With which Redisson `make demo JAVA=1` runs.
DEMO_REDISSON := 4.7.0

# What `make bench` does: see benches/beside/src/options.rs.
BENCH_FLAGS = $(if $(QUICK),--quick) $(if $(TINY),--tiny) $(ONLY:%=--only %) $(if $(SELF_CHECK),--self-check) \
	$(if $(PUBLISH),--publish docs/benchmarks)

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))

.PHONY: help demo install-cli static-cli deb quick test soak fuzz-replies model mutants bench bench-looking bench-codecs clean-tree micro setup lint components docs book features msrv minimal windows fuzz-check vectors deny semver examples peer package unpacked two-versions release-check ship ci
.NOTPARALLEL:

# The rest is for people who change redelay.
FOR_USERS := demo install-cli static-cli deb examples docs book
FOR_RELEASES := deny semver package unpacked two-versions release-check ship peer

help: ## this list
	@awk -F ':.*## ' -v users="$(FOR_USERS)" -v releases="$(FOR_RELEASES)" ' \
		function group(targets, title) { \
			printf "\n%s\n", title; \
			n = split(targets, names, " "); \
			for (i = 1; i <= n; i++) { printf "  %-12s %s\n", names[i], text[names[i]]; delete text[names[i]] } \
		} \
		/^[a-z-]+:.*## / { text[$$1] = $$2; all = all " " $$1 } \
		END { \
			print "make TARGET, where TARGET is one of"; \
			group(users, "To try redelay:"); \
			n = split(releases, names, " "); for (i = 1; i <= n; i++) later[names[i]]; \
			rest = ""; n = split(all, names, " "); \
			for (i = 1; i <= n; i++) if (names[i] in text && !(names[i] in later)) rest = rest " " names[i]; \
			group(rest, "To change it:"); \
			group(releases, "To release it, or check it from outside:"); \
		}' Makefile

demo: ## orders in the terminal, with keys to try to lose one (an optimised build, minutes once); JAVA=1 adds Redisson (REDIS_URL, or a separate server)
	@cargo build --release --package redelay-demo
	@$(if $(JAVA),AVOID="make demo without JAVA=1" scripts/java.sh $(DEMO_REDISSON))
	@scripts/with-server.sh $(TARGET)/release/redelay-demo \
		$(if $(JAVA),--java compat/java/target/$(DEMO_REDISSON))

install-cli: ## installs the command `redelay`, which looks into any queue: docs/operate.md
	cargo install --locked --path crates/redelay-cli

static-cli: ## the same as one file for any Linux, in target/static, with completions and manual pages (minutes)
	scripts/static-cli.sh

deb: static-cli ## the same as a Debian package (builds cargo-deb once)
	scripts/deb.sh

# Most of these tests wait most of the time.
quick: lint ## what fails first after most mistakes, three minutes: lint, the unit tests, and `queues` with the server on PATH
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null || scripts/apt-install.sh redis-server </dev/null
	cargo test --workspace --all-features --lib --bins
	cargo test --workspace --all-features --test queues -- --test-threads=16

test: setup ## every test: with the server on PATH, against Java Redisson, and with Redis 6.2 and Valkey 9.1
	tests/run.py $(OTHER_SERVERS)

# With all packages, as tests/run.py, or the dependencies would be built once more with other features.
soak: setup ## what CI has no time for, hours: every test with each server, all plans of faults and random ones, ten failovers of each kind, millions of made-up payloads, the model with wide bounds: make soak SECONDS=600
	tests/run.py --each $(OTHER_SERVERS)
	cargo test --workspace --all-features --test faults -- --nocapture never_stuck
	REDELAY_SOAK=$(SECONDS) cargo test --workspace --all-features --test faults -- --nocapture never_stuck dying
	REDELAY_SOAK=$(SECONDS) cargo test --workspace --all-features --test detect hostile
	REDELAY_FUZZ=2000000 cargo test --workspace --all-features --test codecs --test memory -- --nocapture made_up
	REDELAY_ROUNDS=50 cargo test --workspace --all-features --test codecs -- --nocapture trees_of_classes
	REDELAY_SOAK=$(SECONDS) REDELAY_PLANS=200 cargo test --workspace --all-features --test faults -- --nocapture each_run_of_a_schedule lone_runs
	REDELAY_PLANS=300 cargo test --workspace --all-features --test faults -- --nocapture never_stuck::held
	REDELAY_ROUNDS=20 cargo test --workspace --all-features --test queues -- --nocapture held_races
	REDELAY_DROPS=5000 cargo test --workspace --all-features --test faults -- --nocapture dropped_futures
	cargo test --workspace --all-features --test connections permissions
	REDELAY_ROUNDS=10 cargo test --workspace --all-features --test connections takers_of_a_thousand_queues -- --nocapture
	REDELAY_ROUNDS=10 REDELAY_SERVER=valkey-9.1 cargo test --workspace --all-features --test connections takers_of_a_thousand_queues -- --nocapture
	REDELAY_SOAK=$(SECONDS) cargo test --workspace --all-features --test faults fleets -- --nocapture
	REDELAY_SOAK=$(SECONDS) cargo test --workspace --all-features --test faults the_messages_of_a_killed_process -- --nocapture
	REDELAY_ROUNDS=10 cargo test --workspace --all-features --test compat -- --nocapture objects_of_every_class random_values_of_every_codec redisson_reads trees_of_classes
	REDELAY_ROUNDS=10 cargo test --workspace --all-features --test faults -- --nocapture --test-threads=1 roles::
	REDELAY_ROUNDS=10 cargo test --workspace --all-features --test faults -- --nocapture --include-ignored --test-threads=2 clusters:: sentinels::
	REDELAY_CYCLES=1000 cargo test --workspace --all-features --test compat -- --nocapture a_pump
	cargo test --workspace --all-features --test smoke -- --ignored --nocapture
	scripts/two-versions.sh
	$(MAKE) model
	@# It moves slots in another way, too.
	REDELAY_ROUNDS=10 REDELAY_SERVER=valkey-9.1 cargo test --workspace --all-features --test faults -- --nocapture --include-ignored --test-threads=2 clusters:: sentinels::

fuzz-replies: ## a million mutated replies on each kind of connection, half an hour or more: make fuzz-replies REPLIES=1000000
	REDELAY_FUZZ=$(REPLIES) cargo test --all-features --test bad_data hostile_replies -- --nocapture

model: ## checks the model of the protocol with wider bounds than `make test`: ten minutes, 2 GB
	cargo test --workspace --all-features --test checked -- --ignored --nocapture --test-threads=1

mutants: ## mutation testing of the pure modules, an hour: .cargo/mutants.toml (builds cargo-mutants once, minutes); ONLY=src/outbox.rs
	scripts/mutants.sh $(ONLY)

bench: $(if $(PUBLISH),clean-tree) setup ## compares redelay with Java Redisson, BullMQ, asynq and apalis-redis, 90 minutes; QUICK=1, ONLY="drain take", SELF_CHECK=1, PUBLISH=1
	cargo build --release --package redelay-beside
	cargo run --release --quiet --package redelay-beside -- $(BENCH_FLAGS)

bench-looking: ## what looking costs a server with a million entries: every command, a minute of `top`, a minute of the exporter
	cargo build --release --package redelay-cli --all-features
	benches/looking.py $(TARGET)/release/redelay

bench-codecs: ## the Java codecs beside serde_json, in turns, ten seconds; ONLY="order" for a part
	cargo bench --package redisson-codec --all-features --bench beside_serde_json -- $(ONLY)

# Published numbers name the commit they were measured at. An hour and a half is too long to find out at the end.
clean-tree:
	@changes=$$(git status --porcelain 2>&1); if [ -n "$$changes" ]; then \
		echo "make bench PUBLISH=1 measures a commit that others can build: commit or stash these changes first:" >&2; \
		echo "$$changes" >&2; \
		exit 1; \
	fi

micro: ## benchmarks of single modules, without a server
	cargo bench --bench micro

# Without a terminal, scripts/confirm-install.sh says what is installed and does not ask.
setup: export AVOID := run single tests by cargo, see CONTRIBUTING.md
setup: ## installs what the tests need: servers, NATS, a JDK, Maven, the Java side of the tests, openssl, Prometheus
	scripts/servers.sh </dev/null
	scripts/java.sh </dev/null
	@command -v openssl >/dev/null || scripts/apt-install.sh openssl </dev/null
	@command -v promtool >/dev/null || scripts/apt-install.sh prometheus </dev/null

lint: components ## format and Clippy with all features; warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings

components:
	@{ cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy

docs: ## the API documentation of the libraries with the guides, warnings are errors; its links lead somewhere
	REDELAY_GUIDE=1 RUSTDOCFLAGS="-D warnings" cargo doc $(LIBRARIES:%=--package %) --all-features --no-deps
	scripts/doc-links.py $(TARGET)/doc redelay/guide

book: ## docs/ as a book, in target/book; its links lead somewhere (builds mdbook once, minutes)
	scripts/book.py $(TARGET)/book

# What users of redelay-testing get is without its internal feature, which the tests of the workspace turn on.
# Tests and examples depend on crates that turn on every codec, so what users of one feature get is seen only by `--lib`.
# `unpacked` builds the examples with the default features: they are without those crates there.
# Features of redelay that only select a codec change none of its own code.
features: components ## Clippy for the published crates with the default features, without, and with each single one; warnings are errors
	cargo clippy --quiet --package redelay --package redelay-testing --lib -- -D warnings
	@set -e; for feature in default "" $(CODEC_FEATURES); do \
		echo "redisson-codec: '$$feature'"; \
		cargo clippy --quiet --package redisson-codec --no-default-features --features "$$feature" --lib -- -D warnings; \
	done
	@set -e; for feature in "" $(OWN_FEATURES); do \
		echo "redelay: '$$feature'"; \
		cargo clippy --quiet --package redelay --no-default-features --features "$$feature" --lib -- -D warnings; \
	done

minimal: ## builds the published crates with the oldest Rust and the lowest versions of their dependencies that Cargo.toml promises
	scripts/minimal.sh

windows: ## compiles both crates for Windows, without `tls`; rustup installs the target
	scripts/windows.sh

msrv: ## builds the published crates with the oldest Rust that Cargo.toml promises, which rustup installs, and Cargo.lock
	scripts/msrv.sh

# Nothing is linked, so libFuzzer itself, in C++, need not be compiled: the variable says that somebody else does it.
fuzz-check: components ## Clippy for the fuzz targets, with the stable compiler
	CUSTOM_LIBFUZZER_PATH=$(TARGET)/libfuzzer.a CARGO_PROFILE_DEV_DEBUG=line-tables-only \
		cargo clippy --locked --manifest-path crates/redisson-codec/fuzz/Cargo.toml --target-dir $(TARGET) -- -D warnings

vectors: ## generates the codecs' vectors again, from Samples.java, Classes.java, Mappers.java, Serialized.java and Shapes.java, with Redisson 4.7.0
	scripts/vectors.sh

deny: ## licences, sources, duplicates and advisories of the dependencies: deny.toml (builds cargo-deny once, minutes)
	scripts/deny.sh

semver: ## incompatible API changes since the last tag, or BASELINE_REV=<commit> (builds cargo-semver-checks once, half an hour)
	scripts/semver.sh $(BASELINE_REV)

# With all packages and features, as the tests, so that nothing is built once more. `features` checks them with the default ones.
examples: ## runs every example, the demo, each with its own server, and `redisson-dump`
	cargo build --workspace --all-features --examples $(PROGRAMS:%=--bin %)
	@set -e; for example in $(EXAMPLES:%=examples/%) $(filter redelay-%,$(PROGRAMS)); do \
		echo "== $$example"; \
		REDIS_URL= $(TIMEOUT) scripts/with-server.sh $(TARGET)/debug/$$example </dev/null; \
	done
	$(TARGET)/debug/redisson-dump 01006a6176612e7574696c2e41727261794c6973f4840300826162e28263

peer: ## builds the program that other checks drive redelay with; the last line is its path
	cargo build --release --package redelay-peer
	@echo "$(TARGET)/release/redelay-peer"

# `make minimal` builds what they contain, and `cargo publish --dry-run` of `make release-check` does it as they are.
package: ## the packages as they would be published: checks their files and links
	cargo package --no-verify --package redisson-codec --package redelay --package redelay-testing $(PACKAGE_FLAGS)
	scripts/package-check.py $(TARGET)/package $(if $(PUBLISH),--publish)

unpacked: ## builds the tests and the documentation of the two libraries outside of the workspace, as docs.rs and others do
	scripts/unpacked.sh

two-versions: ## today's redelay beside an older one on one queue, under faults (builds the older one once, minutes); OLD=<commit>
	scripts/two-versions.sh $(OLD)

release-check: ## what must hold before a release: RELEASING.md; PUBLISH=1 as for a real one, without uploading
	scripts/release-check.py $(if $(PUBLISH),--publish)
	@set -e; for check in deny features msrv minimal windows fuzz-check docs book package unpacked two-versions; do \
		echo "== make $$check"; $(MAKE) --no-print-directory $$check PACKAGE_FLAGS="$(PACKAGE_FLAGS)"; \
	done
	@if git describe --tags --abbrev=0 >/dev/null 2>&1; then $(MAKE) --no-print-directory semver; else \
		echo "semver skipped: no version is tagged, so there is nothing to be compatible with"; fi
	cargo publish --dry-run --package redisson-codec --package redelay --package redelay-testing $(PACKAGE_FLAGS)

ship: components ## builds what is shipped of the command `redelay`, and checks it: the steps of its Dockerfile, a Debian package (builds cargo-deb once; minutes)
	cargo clippy --package redelay-cli --no-default-features -- -D warnings
	scripts/with-server.sh scripts/check-cli.py

ci: lint test docs features minimal windows fuzz-check examples package ## everything that CI runs
