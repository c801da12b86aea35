#!/bin/sh
# Checks whether this commit can be released: Cargo.toml has all published fields, the commit has the version's tag and no changes,
# and CHANGELOG.md describes the version. `--untagged` skips the tag, for a check before tagging.
set -eu
tagged=yes
[ "${1:-}" != --untagged ] || tagged=no
. packaging/about.sh

refused=0
refuse() {
	echo "not to be released: $*" >&2
	refused=1
}

case $repository in
"") refuse "Cargo.toml names no repository; set repository to its https address" ;;
https://?*.?*/?*) ;;
*) refuse "repository = \"$repository\" in Cargo.toml isn't an https address" ;;
esac
case $maintainer in
*@example.*) refuse "the address in authors of Cargo.toml is an example" ;;
?*" <"?*@?*.?*">") ;;
*) refuse "authors in Cargo.toml has no address; write it as \"Name <name@host>\"" ;;
esac
[ -n "$licence" ] || refuse "Cargo.toml names no license"

head=$(sed -n 's/^## //p' CHANGELOG.md | head -n 1)
case $head in
"$version - "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]) ;;
*) refuse "CHANGELOG.md begins with '$head'; name version and day: '## $version - YYYY-MM-DD'" ;;
esac

# Crates must depend on each other in the released version.
others=$(sed -n "s/^\(pipe[a-z-]*\) = { path = .*version = \"\([^\"]*\)\".*/\1 \2/p" Cargo.toml crates/*/Cargo.toml |
	awk -v "version=$version" '$2 != version { print $1 " " $2 }' | sort -u)
[ -z "$others" ] || refuse "dependencies on other versions than $version: $(echo "$others" | tr '\n' ' ')"

[ -z "$(git status --porcelain)" ] || refuse "the work tree has changes; commit them"
if [ "$tagged" = yes ] && ! git tag --points-at HEAD | grep -qx "v$version"; then
	refuse "this commit has no tag v$version; git tag -a v$version"
fi
[ $refused = 0 ] || exit 1
echo "pipemark $version can be released"
