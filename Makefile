# Targets for people:
#
#   make run     build and measure this machine's pipes (about 30 seconds of measuring)
#   make check   what to run while working: lint and the quick tests; needs no root, no browser, no network
#   make test    lint and all tests but the long ones; installs the tools that tests need, and lists skipped tests at the end
#   make test-long  tests that take up to a minute each, such as sweeps over many sizes; before a release, after make test
#   make real    `pipemark why` on real pipelines with known bottlenecks; installs the programs that they need
#   make verdicts  the verdicts of `pipemark why` on recorded pipelines: prints those that changed
#   make traces  record these pipelines anew
#   make soak    tests that take minutes each, for rare events
#   make test-spark   the line job on Apache Spark; needs Java 17, installs pyspark (460 MB) in build/spark
#   make bench-spark  the promises on the line job there; needs 10 GiB of memory for files
#   make fuzz    fuzz the line engine for ten minutes; needs Rust's nightly toolchain
#   make miri    tests of the memory of the line engine under Miri; needs Rust's nightly toolchain with miri
#   make bench   check pipemark's promises, each a ratio of two measurements in the same run
#   make size    the lines of code of each crate; at most 7,000
#   make results  measure the figures of docs/results.md on this machine, for an hour with nothing else running; ONLY=NAME for one
#   make book    docs/ as a book, in build/book; installs mdBook in build/mdbook
#   make picture README's picture, from output of 'pipemark why' on this machine; best with nothing else running
#   make install PREFIX=/usr/local
#   make dist    packages for people without Rust, in build/dist; make test-dist installs and runs each in a clean root
#   make test-kernels  boot Debian kernels in virtual machines with the static program; needs qemu-system-x86_64 and the network
#   make release-check  check that this commit can be released: nothing unset, a tag, a changelog entry
#   make msrv    compile with the oldest Rust that Cargo.toml promises (rustup)
#   make deny    check licences and security advisories of dependencies (cargo-deny)
#   make api     list breaking changes of pipeio since its last release, BASE=v0.1.0; needs cargo-semver-checks

CARGO ?= cargo
PREFIX ?= /usr/local
PIPEMARK = target/release/pipemark

# Whole-program tests that need root, a browser, other compilers or the network, or take more than a few seconds.
SLOW = docs:: engines:: entrants:: extending:: faults:: history_faults:: hostile:: kills:: languages:: large_pipe:: lines_suite:: links:: \
	link_cleanup:: outside_links:: report:: restrictions:: tampering::

.PHONY: all run build check test lint format clippy checks tests test-long tools verdicts traces real real-small test-spark bench-spark soak fuzz miri bench links results size book picture install files dist test-dist test-kernels release-check msrv deny api clean

all: build

build:
	$(CARGO) build --release --locked -p pipemark

run: build
	$(PIPEMARK) run

check: lint
	$(CARGO) test --locked --workspace --lib --bins
	$(CARGO) test --locked -p pipemark --test program -- $(SLOW:%=--skip %)

# Tests, and the script that looks for their tools, write to this file what they skip.
test: export PIPEMARK_SKIPPED = $(CURDIR)/build/skipped
# Incremental compilation and line numbers in backtraces would only slow down this single full build.
test test-long soak: export CARGO_INCREMENTAL = 0
test test-long soak: export CARGO_PROFILE_DEV_DEBUG = none
test: tools checks tests verdicts real-small
	@if [ -s build/skipped ]; then echo; echo "Skipped here:"; sort -u build/skipped | sed 's/^/  /'; \
	else echo; echo "Nothing was skipped."; fi

# clippy-driver compiles as rustc does, and lints too. With `cargo clippy`, dependencies would be compiled a second time.
LINTING = --config 'build.rustc-workspace-wrapper="clippy-driver"'
tests test-long soak: export CLIPPY_ARGS = -Dwarnings__CLIPPY_HACKERY__

# Includes the examples and the documentation's tests. Many tests wait, so there are more threads than CPUs. Tests that start
# thousands of processes make every scan of processes slow, so they run last.
tests: tools checks
	tests/rust.sh $(CARGO) $(LINTING) test --locked --workspace -- --test-threads 6 --skip why_scale::
	tests/rust.sh $(CARGO) $(LINTING) test --locked --workspace --test program -- --test-threads 4 why_scale::

# Fails if no test has such a name, because a check that tried nothing has shown nothing.
ignored = @n=$$($(CARGO) $(LINTING) test -q --locked --workspace --lib --bins --tests -- --list --ignored $(1) | grep -c ': test$$'); \
	echo "$$n tests"; [ "$$n" -gt 0 ]

test-long:
	$(call ignored,long_)
	$(CARGO) $(LINTING) test --locked --workspace --lib --bins --tests -- --test-threads 4 --ignored long_

# After all other tests, because verdicts need an idle machine.
real-small: tests verdicts
	PIPEMARK=$(CURDIR)/target/debug/pipemark tests/real/run.py --small --strict

# The verdicts on recorded pipelines: nothing is run but `why --replay`.
verdicts: tests
	PIPEMARK=$(CURDIR)/target/debug/pipemark tests/real/run.py --replay tests/real/traces --strict

# Records the pipelines anew: some twenty minutes, with nothing else running.
traces: build
	PIPEMARK=$(CURDIR)/$(PIPEMARK) tests/real/run.py --install --traces tests/real/traces
	PIPEMARK=$(CURDIR)/$(PIPEMARK) tests/real/run.py --replay tests/real/traces --update

real: build
	PIPEMARK=$(CURDIR)/$(PIPEMARK) tests/real/run.py --install

SPARK = build/spark/bin
test-spark: build $(SPARK)/spark-submit
	PIPEMARK=$(CURDIR)/$(PIPEMARK) $(SPARK)/python engines/spark/test_lines.py

bench-spark: build $(SPARK)/spark-submit
	bench/spark.py

$(SPARK)/spark-submit:
	python3 -m venv build/spark
	$(SPARK)/python -m pip install -q pyspark==4.0.1

soak:
	$(call ignored,soak_)
	PROPTEST_CASES=2000 $(CARGO) $(LINTING) test --locked --workspace --lib
	$(CARGO) $(LINTING) test --locked --workspace --lib --bins --tests -- --ignored soak_

# The same flags as cargo-fuzz, without needing it.
FUZZ_TIME ?= 600
fuzz: export RUSTFLAGS = --cfg fuzzing -Zsanitizer=address -Cdebug-assertions -Cpasses=sancov-module \
	-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
	-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
fuzz:
	mkdir -p build/corpus/lines
	$(CARGO) +nightly run --release --locked --manifest-path fuzz/Cargo.toml --target-dir build/fuzz \
		--target $$(rustc -vV | sed -n 's/^host: //p') --bin lines -- -max_total_time=$(FUZZ_TIME) build/corpus/lines

# What needs no system call that Miri lacks. Under Miri, pipeio maps memory without advice to the kernel.
MIRI = lines::batch lines::output lines::region
miri:
	MIRIFLAGS=-Zmiri-disable-isolation $(CARGO) +nightly miri test --locked --target-dir build/miri -p pipeio --lib -- $(MIRI)

# rustdoc reuses what clippy has compiled.
lint: format clippy checks

format:
	$(CARGO) fmt --all --check

clippy: format
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# What of `make lint` isn't part of compiling. Other languages are checked only where that is quick.
checks: format
	$(CARGO) metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps -p pipeio -p pipeio-harness -p pipemark-sys
	@if command -v gofmt >/dev/null; then \
		found=$$(gofmt -l entrants/go links crates/pipemark-entrants/contract); [ -z "$$found" ] || { echo "run gofmt -w: $$found"; exit 1; }; \
	else echo "no gofmt: the form of Go is not checked"; fi
	@if command -v clang-format >/dev/null; then \
		clang-format --dry-run -Werror --style=file:entrants/.clang-format entrants/c/*.[ch] entrants/cpp/*.[ch]pp bench/*.c \
			crates/pipemark-entrants/contract/*.[ch] crates/pipemark-entrants/contract/*.hpp links/*/*.c links/*/*.cpp; \
	else echo "no clang-format: the form of C and C++ is not checked"; fi
	tests/prose.py
	bench/size.py >/dev/null
	bench/results.py --check
	@if command -v black >/dev/null; then black --check --config entrants/pyproject.toml engines entrants bench docs links packaging tests crates/pipemark-entrants/contract; \
	else echo "no black: the form of Python is not checked"; fi

tools:
	tests/tools.sh

size:
	@bench/size.py

bench: build build/pair build/ceiling
	$(CARGO) build --release --locked --manifest-path entrants/lines/Cargo.toml --target-dir build/entrants/lines
	$(CARGO) build --release --locked -p pipeio --example ways
	@broken=0; for bench in run chain relay buffer copying compare languages lines links why why_sizes; do bench/$$bench.py || broken=1; done; exit $$broken

# The libraries of links by other programs.
links: build
	links/install.sh
	$(PIPEMARK) list links

results: build build/pair build/ceiling
	$(CARGO) build --release --locked --manifest-path entrants/lines/Cargo.toml --target-dir build/entrants/lines
	bench/results.py $(ONLY:%=--only %)
	$(if $(ONLY),,bench/atlas.py)

build/pair build/ceiling: build/%: bench/%.c
	mkdir -p build
	$(CC) -O3 -Wall -Wextra -Werror -o $@ $<

# The program, its man pages, and the completions of bash, zsh and fish. A test makes and checks the files.
FILES = crates/pipemark
install: build files

files:
	install -D -m 755 $(PIPEMARK) $(DESTDIR)$(PREFIX)/bin/pipemark
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(FILES)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 644 $(FILES)/completions/pipemark.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/pipemark
	install -d $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	install -m 644 $(FILES)/completions/_pipemark $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_pipemark
	install -d $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	install -m 644 $(FILES)/completions/pipemark.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/pipemark.fish

dist:
	packaging/dist.sh $(PROCESSORS)

test-dist:
	packaging/test.sh $(ONLY)

# With --target, build scripts aren't linked statically.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
test-kernels:
	RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) build --release --locked --target $(HOST) -p pipemark
	RUSTFLAGS='-C target-feature=+crt-static' $(CARGO) install -q --locked --root build/kernels/nfs --target $(HOST) cargo-nfs3-server@0.2.3
	tests/kernels/kernels.py --program target/$(HOST)/release/pipemark --nfs-server build/kernels/nfs/bin/cargo-nfs3-server $(KERNELS)

release-check:
	packaging/release-check.sh

RUST = $(shell sh -c '. packaging/about.sh; echo $$rust')
msrv:
	rustup toolchain install $(RUST) --profile minimal --no-self-update
	rustup run $(RUST) cargo check --locked --workspace --target-dir target/msrv
	rustup run $(RUST) cargo check --locked -p pipeio --no-default-features --target-dir target/msrv

deny:
	cargo deny --all-features check $(DENY)

WHY = pipemark why 'zcat access.log.gz | grep -v bot | gzip' >/dev/null
picture: build
	mkdir -p build/picture
	$(PIPEMARK) gen log:7 --total 400m | gzip > build/picture/access.log.gz
	echo "$$ $(WHY)" > docs/why.txt
	cd build/picture && PATH=$(CURDIR)/target/release:$$PATH COLUMNS=80 $(WHY) 2>> $(CURDIR)/docs/why.txt
	docs/picture.py

MDBOOK = build/mdbook/bin/mdbook
book: $(MDBOOK)
	bench/results.py --page
	$(MDBOOK) build
	bench/book_links.py

$(MDBOOK):
	$(CARGO) install --locked --root build/mdbook --no-default-features --features search mdbook@0.5.4

BASE ?= main
api:
	$(CARGO) test --locked -p pipeio --test main api::
	$(CARGO) semver-checks -p pipeio --baseline-rev $(BASE)

clean:
	rm -rf target build
