// SPDX-License-Identifier: Apache-2.0
//
// `stepwell board`: a page in a browser for a directory of runs.
#include "tool/commands.hpp"

#include "stepwell/base/error.hpp"

#if STEPWELL_HAS_BOARD
#include "stepwell/board/board_hook.hpp"

#include <csignal>
#endif

namespace stepwell::tool {

#if STEPWELL_HAS_BOARD

exit_code serve_board(const board_command_options& options, console& to) {
  sigset_t ends;
  sigemptyset(&ends);  // without `::`, because these are macros on macOS
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // also for the thread of the server
  const directory_board server({.port = options.port,
                                .address = options.address,
                                .hosts = options.hosts,
                                .certificate_file = options.certificate_file,
                                .private_key_file = options.private_key_file,
                                .runs_directory = options.directory,
                                .on_ready = [&](const std::string& url) { (to.out << url << '\n').flush(); }});
  int received = 0;
  ::sigwait(&ends, &received);
  return exit_code::good;
}

#else

exit_code serve_board(const board_command_options& /*options*/, console& /*to*/) {
  throw unimplemented_error("this program was built without the board; build it with STEPWELL_BUILD_BOARD=ON");
}

#endif

}  // namespace stepwell::tool
