# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tests/run: the page of the board, with a mock server and with the real one. Needs node, npm's registry for the tools of tests/board,
# and chromium. STEPWELL_CURVES is the number of random curves that are drawn, 150 if it is not set.

# board_tools: installs the tools whose versions tests/board/package-lock.json pins, in build/board. Runs no script of a package.
board_tools() {
  local tools=$root/build/board
  mkdir -p "$tools"
  cmp -s "$root/tests/board/package-lock.json" "$tools/package-lock.json" && [ -d "$tools/node_modules" ] ||
    (cd "$tools" && cp "$root"/tests/board/package*.json . && npm ci --ignore-scripts --no-audit --no-fund)
  cp "$root/tests/board/eslint.config.js" "$tools"  # node looks for the plugins of a configuration beside it
}

# board_lint: the vendored library is the pinned one, and the code has its types, rules and layout.
board_lint() {
  local page=src/stepwell/board/page tools=build/board/node_modules
  (
    cd "$root"
    (cd "$page/uplot" && sha256sum --check --quiet SHA256SUMS)
    cmp "$page/uplot/uPlot.iife.min.js" "$tools/uplot/dist/uPlot.iife.min.js"
    cmp "$page/uplot/uPlot.min.css" "$tools/uplot/dist/uPlot.min.css"
    "$tools/.bin/prettier" --config tests/board/prettier.config.js --check "$page"/*.js "$page"/*.css tests/board/*.{js,mjs,json}
    "$tools/.bin/eslint" --config build/board/eslint.config.js --max-warnings 0 "$page" tests/board
    "$tools/.bin/tsc" --project tests/board/tsconfig.json
  )
}

run_board() {
  have build tool tests board
  say "the tools of tests/board"
  board_tools
  say "types, rules and layout of the page"
  board_lint
  configure dev
  build dev board_session stepwell_tool
  say "the page in a browser, with a mock server and with the real one"
  (cd "$root" && node --test --test-concurrency 1 tests/board/page_test.mjs tests/board/odd_values_test.mjs \
    tests/board/server_test.mjs)
}
