// SPDX-License-Identifier: Apache-2.0
#include "stepwell/io/detail/failure.hpp"

#include <cerrno>
#include <utility>

namespace stepwell::io {
namespace {

/// Returns advice for the reader of the message, or an empty string if there is none.
std::string_view advice(int errno_value) noexcept {
  switch (errno_value) {
    case ENOSPC: return "free some space on the disk";
    case EDQUOT: return "free some space within the disk quota, or raise the quota";
    case EROFS: return "the file system is mounted read-only; choose another directory, or mount it writable";
    case EACCES:
    case EPERM: return "check the permissions and the owner of the file and of its parent directories";
    case ENOENT: return "check the spelling, and that neither the file nor its directory was removed";
    case ENOTDIR: return "a part of the path is a file, not a directory; check the path";
    case EISDIR: return "this is a directory; give the path of a file";
    case EEXIST: return "choose another name, or remove the existing file or directory";
    case ENOTEMPTY: return "remove the contents of the directory first";
    case EMFILE:
    case ENFILE: return "close files, or raise the limit of open files (ulimit -n)";
    case ELOOP: return "the symbolic links of this path form a loop; check them";
    case ENAMETOOLONG: return "choose a shorter name";
    case EIO: return "the device reports an error; check the system log, and do not trust this file";
    case EFBIG: return "the file would exceed a size limit (ulimit -f, or the limit of the file system)";
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
