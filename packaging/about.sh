# What the packages say of the project, read from Cargo.toml, the one file that says it. To be sourced in the source's folder.
about() { # KEY
	sed -n "/^\[workspace.package\]/,/^\[[^w]/{s/^$1 = \[*\"\([^\"]*\)\".*/\1/p}" Cargo.toml | head -n 1
}
version=$(about version)
licence=$(about license)
maintainer=$(about authors)
repository=$(about repository)
rust=$(about rust-version)
