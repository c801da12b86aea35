#!/bin/sh
# Fetches the versions of Vega named below from the npm registry and stores them, compressed, beside this file.
set -eu
cd "$(dirname "$0")"

vega=6.4.0
vega_lite=6.5.0
vega_interpreter=2.3.2

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
npm install --prefix "$directory" --no-package-lock --ignore-scripts --silent \
	"vega@$vega" "vega-lite@$vega_lite" "vega-interpreter@$vega_interpreter"
from="$directory/node_modules"

plain() {
	sed '/^\/\/# sourceMappingURL=/d' "$1"
}
# The interpreter is published only as a module. The two lines that make it a module are changed.
{
	plain "$from/vega/build/vega.min.js"
	echo
	plain "$from/vega-lite/build/vega-lite.min.js"
	echo
	echo '(() => {'
	plain "$from/vega-interpreter/build/vega-interpreter.js" |
		sed -e "s/^import {\(.*\)} from 'vega-util';/const {\1} = vega;/" \
			-e 's/^export { expression as expressionInterpreter };/vega.expressionInterpreter = expression;/'
	echo '})();'
} | gzip -9n >vega.js.gz

{
	echo "vega $vega, vega-lite $vega_lite and vega-interpreter $vega_interpreter, with what vega.min.js bundles:"
	for package in vega vega-lite vega-interpreter d3-array d3-delaunay delaunator topojson-client internmap \
		robust-predicates; do
		for license in "$from/$package"/LICENSE*; do
			[ ! -f "$license" ] || { printf '\n== %s\n\n' "$package" && tr -d '\r' <"$license"; }
		done
	done
} >LICENSE
sed -i "s/^| vega .*/| vega | $vega |/; s/^| vega-lite .*/| vega-lite | $vega_lite |/; s/^| vega-interpreter .*/| vega-interpreter | $vega_interpreter |/" README.md
