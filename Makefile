# What there is to do here: `make help`. CI runs the same targets (.ci/run).
.DEFAULT_GOAL := help
SHELL := /bin/sh

EXAMPLES := $(sort $(notdir $(basename $(wildcard examples/*.rs))))
# What stands in [features], but for `default`.
FEATURES := $(shell sed -n '/^\[features\]/,/^\[dependencies\]/s/^\([a-z0-9_-]*\) *=.*/\1/p' Cargo.toml | grep -vx default)
# tests/compat.rs talks to Java and runs once; every other integration test runs with every server.
SERVER_TESTS = $(filter-out compat,$(notdir $(basename $(wildcard tests/*.rs))))
OTHER_SERVERS := redis-6.2 valkey-9.1
# A package is made of what is committed. With changes that are not: make package PACKAGE_FLAGS=--allow-dirty
PACKAGE_FLAGS ?=

# An example that hangs must not hang all.
TIMEOUT := $(if $(shell command -v timeout),timeout 120)

# How long `make soak` runs.
SECONDS ?= 600

# With which Redisson `make demo JAVA=1` runs.
DEMO_REDISSON := 4.7.0

# What `make bench` does: see benches/beside/src/options.rs.
BENCH_FLAGS = $(if $(QUICK),--quick) $(if $(TINY),--tiny) $(ONLY:%=--only %) $(if $(SELF_CHECK),--self-check) \
	$(if $(PUBLISH),--publish docs/benchmarks)

.PHONY: help demo test soak bench micro setup lint components docs features examples peer package ci
.NOTPARALLEL:

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

demo: ## orders in the terminal, with keys to try to lose one; JAVA=1 adds Redisson (REDIS_URL, or a server of its own)
	@cargo build --package redelay-demo
	@$(if $(JAVA),AVOID="make demo without JAVA=1" scripts/java.sh $(DEMO_REDISSON))
	@scripts/with-server.sh cargo run --quiet --package redelay-demo -- \
		$(if $(JAVA),--java compat/java/target/$(DEMO_REDISSON))

test: setup ## every test: with the server on PATH, against Java Redisson, and with Redis 6.2 and Valkey 9.1
	cargo test --workspace --all-features
	@set -e; for server in $(OTHER_SERVERS); do \
		if [ ! -d target/servers/$$server ]; then echo "skipped: there is no $$server for this machine"; continue; fi; \
		echo "REDELAY_SERVER=$$server cargo test --all-features $(SERVER_TESTS:%=--test %)"; \
		REDELAY_SERVER=$$server cargo test --all-features $(SERVER_TESTS:%=--test %); \
	done

soak: ## random plans of faults for a while, with the server on PATH: make soak SECONDS=600
	REDELAY_SOAK=$(SECONDS) cargo test --all-features --test never_stuck -- --nocapture

bench: setup ## beside Java Redisson, half an hour; or QUICK=1, ONLY="drain take", SELF_CHECK=1, PUBLISH=1
	cargo build --release --package redelay-beside
	cargo run --release --quiet --package redelay-beside -- $(BENCH_FLAGS)

micro: ## the pure rooms alone, without a server
	cargo bench --bench micro

setup: ## installs what the tests need: servers, a JDK, Maven, the Java side of the tests, openssl
	scripts/servers.sh
	scripts/java.sh
	@command -v openssl >/dev/null || scripts/apt-install.sh openssl

lint: components ## format and clippy, warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings

components:
	@{ cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy

docs: ## the API documentation, warnings are errors
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --all-features --no-deps

features: components ## the library with no feature, and with each one alone
	@set -e; for feature in "" $(FEATURES); do \
		echo "cargo clippy --no-default-features --features '$$feature'"; \
		cargo clippy --quiet --no-default-features --features "$$feature" -- -D warnings; \
	done

examples: ## runs every example and the demo, each with a server of its own
	cargo build --examples
	@set -e; for example in $(EXAMPLES); do \
		echo "== $$example"; \
		REDIS_URL= $(TIMEOUT) scripts/with-server.sh cargo run --quiet --example $$example </dev/null; \
	done
	cargo build --package redelay-demo
	REDIS_URL= $(TIMEOUT) scripts/with-server.sh cargo run --quiet --package redelay-demo </dev/null

peer: ## the compatibility peer on redelay; the last line is the path of its program
	cargo build --release --package redelay-peer
	@echo "$(abspath $(or $(CARGO_TARGET_DIR),target))/release/redelay-peer"

package: ## the packages as they would be published, built from themselves
	cargo package --package redisson-codec --package redelay $(PACKAGE_FLAGS)

ci: lint test docs features examples package ## all of it
