# Version, licence and other facts for the packages, read from Cargo.toml. Source this file in the project's directory.
about() { # KEY
	sed -n "/^\[workspace.package\]/,/^\[[^w]/{s/^$1 = \[*\"\([^\"]*\)\".*/\1/p}" Cargo.toml | head -n 1
}
version=$(about version)
licence=$(about license)
maintainer=$(about authors)
repository=$(about repository)
rust=$(about rust-version)
