// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/failure.hpp"

#include <cerrno>
#include <utility>

namespace stepwell::io {
namespace {

/// Returns advice for the reader of the message, or an empty string if there is none.
std::string_view advice(int errno_value) noexcept {
  switch (errno_value) {
    case ENOSPC: return "make room on the disk";
    case EDQUOT: return "make room within the disk quota, or raise it";
    case EROFS: return "the file system is mounted read-only; choose another directory, or mount it writable";
    case EACCES:
    case EPERM: return "check the rights and the owner of the file and of the directories above it";
    case ENOENT: return "check the spelling, and that nobody removed the file or its directory";
    case ENOTDIR: return "a part of the path is a file, not a directory; check the path";
    case EISDIR: return "this is a directory; name a file";
    case EEXIST: return "choose another name, or remove what is there";
    case ENOTEMPTY: return "remove what is in the directory first";
    case EMFILE:
    case ENFILE: return "close files, or raise the limit of open files (ulimit -n)";
    case ELOOP: return "the symbolic links of this path lead in a circle; check them";
    case ENAMETOOLONG: return "choose a shorter name";
    case EIO: return "the device reports an error; look at the system log, and do not trust this file";
    case EFBIG: return "the file would grow over a limit (ulimit -f, or the file system's own)";
    default: return {};
  }
}

}  // namespace

status failure(int errno_value, std::string_view tried, std::string path) {
  auto made = status_from_errno(errno_value, tried, std::move(path));
  if (const auto what_to_do = advice(errno_value); !what_to_do.empty()) { made.message.append("; ").append(what_to_do); }
  return made;
}

}  // namespace stepwell::io
