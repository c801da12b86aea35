# The words people type.
#
#   make run     build and measure this machine's pipes (about 30 seconds of measuring)
#   make test    lint, then every test; installs the tools that the tests need
#   make bench   what pipemark promises, each as a ratio of two things measured in the same run
#   make install PREFIX=/usr/local

CARGO ?= cargo
PREFIX ?= /usr/local
PIPEMARK = target/release/pipemark

.PHONY: all run build test check lint tools bench install clean

all: build

build:
	$(CARGO) build --release --locked -p pipemark

run: build
	$(PIPEMARK) run

test: tools lint check

check:
	$(CARGO) test --locked --workspace

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

tools:
	tests/tools.sh

bench: build build/pair
	$(CARGO) build --release --locked --manifest-path entrants/lines/Cargo.toml --target-dir build/entrants/lines
	@broken=0; for bench in run chain compare languages lines; do bench/$$bench.py || broken=1; done; exit $$broken

build/pair: bench/pair.c
	mkdir -p build
	$(CC) -O2 -Wall -Wextra -Werror -o $@ $<

# The program, its man pages, and the completions of bash, zsh and fish.
install: build
	install -D -m 755 $(PIPEMARK) $(DESTDIR)$(PREFIX)/bin/pipemark
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(PIPEMARK) __man $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(PIPEMARK) completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/pipemark
	install -d $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	$(PIPEMARK) completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_pipemark
	install -d $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(PIPEMARK) completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/pipemark.fish

clean:
	rm -rf target build
