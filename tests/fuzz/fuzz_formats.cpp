// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the decoders of `format` separately; the first byte selects one. A decoder must accept the encoding of each
// input that it accepts.
#include "fuzz/tool_fuzz.hpp"
#include "support/table_entries.hpp"

#include <stepwell/format/checkpoint/detail/bundle.hpp>
#include <stepwell/format/checkpoint/detail/checkpoint_state.hpp>
#include <stepwell/format/checkpoint/detail/string_tensor.hpp>
#include <stepwell/format/checkpoint/detail/table.hpp>
#include <stepwell/format/events/detail/summary_values.hpp>
#include <stepwell/format/events/event.hpp>
#include <stepwell/format/events/record.hpp>

#include <algorithm>
#include <span>

namespace format = stepwell::format;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

void require(bool holds) {
  if (!holds) { std::abort(); }
}

void fuzz_table(std::string_view text) {
  const auto entries = stepwell::test::read_table(text);
  if (!entries) { return; }
  format::table_writer again;
  for (const auto& [key, value] : *entries) { require(again.add(key, value).ok()); }
  require(*stepwell::test::read_table(again.finish()) == *entries);
}

void fuzz_entry(std::string_view text) {
  if (const auto header = format::decode_bundle_header(text)) { require(*format::decode_bundle_header(encode(*header)) == *header); }
  if (const auto entry = format::decode_bundle_entry(text)) { require(*format::decode_bundle_entry(encode(*entry)) == *entry); }
}

void fuzz_state(std::string_view text) {
  const auto state = format::decode_checkpoint_state(text);
  if (!state) { return; }
  const auto again = format::decode_checkpoint_state(encode(*state));
  require(again && again->all_model_checkpoint_paths == state->all_model_checkpoint_paths);
}

void fuzz_strings(stepwell::test::fuzz_bytes& bytes) {
  const auto count = bytes.byte() + 256 * bytes.byte();
  const auto piece_size = 1 + bytes.byte();
  const auto text = bytes.rest();
  format::string_checker checker(text.size(), count);
  bool is_good = true;
  for (std::size_t at = 0; is_good && at < text.size(); at += piece_size) {
    const auto piece = text.substr(at, piece_size);
    const bool is_hole = piece.find_first_not_of('\0') == std::string_view::npos;
    is_good = (is_hole ? checker.feed_zeros(piece.size()) : checker.feed(bytes_of(piece))).ok();
  }
  const auto whole = format::decode_strings(text, count);
  require((is_good && checker.finish().ok()) == whole.ok());
}

void fuzz_records(std::string_view text) {
  format::record_decoder decoder(std::uint64_t{1} << 20);
  for (std::size_t at = 0; at < text.size(); at += 7) {
    decoder.feed(bytes_of(text.substr(at, 7)));
    static_cast<void>(decoder.next_length());
    if (const auto record = decoder.next()) { static_cast<void>(format::decode_event(*record)); }
  }
}

void fuzz_event(std::string_view text) {
  const auto happened = format::decode_event(bytes_of(text));
  if (happened) { require(format::decode_event(bytes_of(format::encode_event(*happened))).ok()); }
  static_cast<void>(format::decode_hparams(bytes_of(text)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stepwell::test::fuzz_bytes bytes(data, size);
  switch (bytes.byte() % 6) {
    case 0: fuzz_table(bytes.rest()); break;
    case 1: fuzz_entry(bytes.rest()); break;
    case 2: fuzz_state(bytes.rest()); break;
    case 3: fuzz_strings(bytes); break;
    case 4: fuzz_records(bytes.rest()); break;
    default: fuzz_event(bytes.rest()); break;
  }
  return 0;
}
