// SPDX-License-Identifier: Apache-2.0
//
// `stepwell plot`: draws scalars of event files as lines, in the terminal or as an SVG image.
#pragma once

#include "tool/console.hpp"
#include "tool/series.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepwell::tool {

/// Options of `stepwell plot`.
struct plot_options {
  std::vector<std::string> targets;  ///< Directories of event files, or event files.
  std::vector<std::string> tags;
  std::string svg = {};    ///< The output file; empty: draw in the terminal.
  int width = 0;           ///< Columns (SVG: pixels); 0: the width of the terminal (SVG: 860).
  int height = 0;          ///< Lines (SVG: pixels); 0: 20 (SVG: 480).
  bool log_scale = false;  ///< Values of 0 and below are skipped, and counted.
  bool ascii = false;
  std::optional<std::int64_t> from_step = {};
  std::optional<std::int64_t> to_step = {};
};

/// Draws one line for each tag and target. Values at steps that were later rolled back and repeated are ignored, as in viewers.
/// @errors `not_found_error` that lists the existing scalars; `invalid_argument_error` if a logarithmic axis leaves no value to draw.
/// @cost Memory for 65536 groups of points for each line.
[[nodiscard]] outcome plot(const plot_options& options, console& to);

/// The lines and settings of a chart, for both kinds of output.
struct chart {
  std::vector<series> lines;
  std::string title;
  int width = 80;
  int height = 20;
  bool log_scale = false;
};

/// Returns ", and 3 not finite", ", and 2 of 0 or below left out (...)", or both. Empty if no value of the line was skipped.
[[nodiscard]] std::string left_out_text(const series& line);

/// Draws with braille dots (`ascii`: stars), and numbers at the axes. Several lines in one chart can be distinguished by colour only.
/// Without colours, each line has its own chart.
void draw_in_terminal(const chart& drawn, bool ascii, console& to);
/// Returns a complete SVG document, without scripts and embedded fonts.
[[nodiscard]] std::string svg_of(const chart& drawn);

}  // namespace stepwell::tool
