// SPDX-License-Identifier: Apache-2.0
#include "stepwell/format/events/event.hpp"

#include "stepwell/format/detail/parse_message.hpp"
#include "stepwell/format/events/detail/summary_message.hpp"
#include "stepwell/format/proto/event.pb.h"
#include "stepwell/format/text/detail/utf8.hpp"

namespace stepwell::format {
namespace {

session_log read(const tensorflow::SessionLog& message) {
  return {static_cast<session_status>(message.status()), message.checkpoint_path(), message.msg()};
}

log_message read(const tensorflow::LogMessage& message) { return {static_cast<std::int32_t>(message.level()), message.message()}; }

tagged_run_metadata read(const tensorflow::TaggedRunMetadata& message) { return {message.tag(), message.run_metadata()}; }

result<void> read_what(const tensorflow::Event& message, event& made) {
  switch (message.what_case()) {
    case tensorflow::Event::kFileVersion: made.what = file_version{message.file_version()}; break;
    case tensorflow::Event::kGraphDef: made.what = graph_def{message.graph_def()}; break;
    case tensorflow::Event::kMetaGraphDef: made.what = meta_graph_def{message.meta_graph_def()}; break;
    case tensorflow::Event::kLogMessage: made.what = read(message.log_message()); break;
    case tensorflow::Event::kSessionLog: made.what = read(message.session_log()); break;
    case tensorflow::Event::kTaggedRunMetadata: made.what = read(message.tagged_run_metadata()); break;
    case tensorflow::Event::kSummary: {
      auto values = read_summary(message.summary());
      if (!values) { return std::move(values).error(); }
      made.what = std::move(values).value();
      break;
    }
    case tensorflow::Event::WHAT_NOT_SET: break;
  }
  return {};
}

// A visitor that writes the item of an event into the message.
struct what_writer {
  tensorflow::Event& message;

  void operator()(std::monostate) const {}
  void operator()(const file_version& what) const { message.set_file_version(to_utf8(what.text)); }
  void operator()(const graph_def& what) const { message.set_graph_def(what.bytes); }
  void operator()(const meta_graph_def& what) const { message.set_meta_graph_def(what.bytes); }
  void operator()(const summary& what) const { write_summary(what, *message.mutable_summary()); }
  void operator()(const log_message& what) const {
    message.mutable_log_message()->set_level(static_cast<tensorflow::LogMessage::Level>(what.level));
    message.mutable_log_message()->set_message(to_utf8(what.message));
  }
  void operator()(const session_log& what) const {
    auto& log = *message.mutable_session_log();
    log.set_status(static_cast<tensorflow::SessionLog::SessionStatus>(what.status));
    log.set_checkpoint_path(to_utf8(what.checkpoint_path));
    log.set_msg(to_utf8(what.message));
  }
  void operator()(const tagged_run_metadata& what) const {
    message.mutable_tagged_run_metadata()->set_tag(to_utf8(what.tag));
    message.mutable_tagged_run_metadata()->set_run_metadata(what.run_metadata);
  }
};

}  // namespace

std::string encode_event(const event& happened) {
  tensorflow::Event message;
  message.set_wall_time(happened.wall_time);
  message.set_step(happened.step);
  std::visit(what_writer{message}, happened.what);
  if (!happened.source_writer.empty()) { message.mutable_source_metadata()->set_writer(to_utf8(happened.source_writer)); }
  return message.SerializeAsString();
}

result<event> decode_event(std::span<const std::byte> bytes) {
  tensorflow::Event message;
  if (!parse_message(message, bytes)) { return status(errc::data_loss, "the bytes are not an Event"); }
  event made;
  made.wall_time = message.wall_time();
  made.step = message.step();
  made.source_writer = message.source_metadata().writer();
  if (auto done = read_what(message, made); !done) { return std::move(done).error(); }
  return made;
}

}  // namespace stepwell::format
