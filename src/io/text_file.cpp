// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include <io/file_error.hpp>
#include <io/text_file.hpp>

namespace qrane::io {

TextFile read_text_file(const std::string& path, std::size_t limit) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail(path, "cannot read: ", system_reason());
  if (S_ISDIR(status.st_mode)) fail(path, "cannot read: it is a directory");
  struct Close {
    void operator()(gzFile f) const { gzclose_r(f); }
  };
  // zlib hands files that are not compressed through as they are.
  const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rb"));
  if (!file) fail(path, "cannot read: ", system_reason());
  gzbuffer(file.get(), 1 << 18);

  TextFile result;
  result.text.reserve(static_cast<std::size_t>(status.st_size) + 1);
  constexpr std::size_t chunk = std::size_t{1} << 22;
  for (;;) {
    const std::size_t had = result.text.size();
    const std::size_t want = limit == 0 ? chunk : std::min(chunk, limit - had);
    if (want == 0) break;
    if (result.text.capacity() < had + want) result.text.reserve(std::max(had + want, 2 * had));
    result.text.resize(had + want);
    const int got = gzread(file.get(), result.text.data() + had, static_cast<unsigned>(want));
    result.text.resize(had + static_cast<std::size_t>(std::max(got, 0)));
    int code = Z_OK;
    const char* words = gzerror(file.get(), &code);
    if (code == Z_BUF_ERROR) {
      result.truncated = true;
      break;
    }
    if (got < 0) {
      std::string_view reason = words;  // zlib puts the name in front
      if (reason.starts_with(path + ": ")) reason.remove_prefix(path.size() + 2);
      fail(path, "cannot read: ", code == Z_ERRNO ? system_reason() : std::string(reason));
    }
    if (got == 0) break;
  }
  return result;
}

}  // namespace qrane::io
