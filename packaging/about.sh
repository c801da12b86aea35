# Facts about the project for the packages, read from Cargo.toml, which alone states them. Source this in the project's folder.
about() { # KEY
	sed -n "/^\[workspace.package\]/,/^\[[^w]/{s/^$1 = \[*\"\([^\"]*\)\".*/\1/p}" Cargo.toml | head -n 1
}
version=$(about version)
licence=$(about license)
maintainer=$(about authors)
repository=$(about repository)
rust=$(about rust-version)
