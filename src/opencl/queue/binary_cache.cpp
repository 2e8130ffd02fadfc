// SPDX-License-Identifier: Apache-2.0
// Entry: magic, key length, key, binary length, binary, checksum of the binary. The file's name is the key's
// hash; the key itself is compared on reading, so that a collision costs a build and not a wrong program.
#include "opencl/queue/binary_cache.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <qrane/error.hpp>

namespace qrane::backend::opencl {

namespace {

constexpr char magic[8] = {'q', 'r', 'a', 'n', 'e', 'c', 'l', '1'};

// FNV-1a, 64 bits.
std::uint64_t hash(const void* data, std::size_t size) {
  std::uint64_t value = 14695981039346656037ULL;
  for (std::size_t i = 0; i < size; ++i)
    value = (value ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ULL;
  return value;
}

std::filesystem::path entry_path(const std::string& key) {
  const char* root = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (root && *root)
    folder = root;
  else if (home && *home)
    folder = std::filesystem::path(home) / ".cache";
  else
    return {};
  constexpr char digits[] = "0123456789abcdef";
  std::string name;
  for (std::uint64_t h = hash(key.data(), key.size()), i = 0; i < 16; ++i, h >>= 4) name += digits[h & 15];
  return folder / "qrane" / "opencl" / (name + ".bin");
}

template <class T>
void append(std::string& out, const T* data, std::size_t count) {
  out.append(reinterpret_cast<const char*>(data), count * sizeof(T));
}

// Reads the next `size` bytes of text from position on; null when they are not there.
const char* take(const std::string& text, std::size_t& position, std::uint64_t size) {
  if (size > text.size() - position) return nullptr;
  const char* start = text.data() + position;
  position += size;
  return start;
}

bool take_number(const std::string& text, std::size_t& position, std::uint64_t& value) {
  const char* start = take(text, position, sizeof value);
  if (start) std::memcpy(&value, start, sizeof value);
  return start != nullptr;
}

std::vector<unsigned char> parse(const std::string& text, const std::string& key) {
  std::size_t position = 0;
  std::uint64_t size = 0, checksum = 0;
  const char* start = take(text, position, sizeof magic);
  if (!start || std::memcmp(start, magic, sizeof magic) != 0) return {};
  if (!take_number(text, position, size) || size != key.size()) return {};
  start = take(text, position, size);
  if (!start || std::memcmp(start, key.data(), size) != 0) return {};
  if (!take_number(text, position, size)) return {};
  start = take(text, position, size);
  if (!start || !take_number(text, position, checksum) || checksum != hash(start, size)) return {};
  return {start, start + size};
}

}  // namespace

std::vector<unsigned char> load_binary(const std::string& key) try {
  const std::filesystem::path path = entry_path(key);
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse(text, key);
} catch (const std::exception&) {
  return {};
}

void store_binary(const std::string& key, const std::vector<unsigned char>& binary) try {
  const std::filesystem::path path = entry_path(key);
  if (path.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  std::string text(magic, sizeof magic);
  const std::uint64_t key_size = key.size(), size = binary.size(), checksum = hash(binary.data(), binary.size());
  append(text, &key_size, 1);
  text += key;
  append(text, &size, 1);
  append(text, binary.data(), binary.size());
  append(text, &checksum, 1);
  static std::atomic<int> serial{0};
  std::filesystem::path beside = path;
  beside += detail::concat(".", ::getpid(), "-", serial++);
  {
    std::ofstream file(beside, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file.flush()) {
      file.close();
      std::filesystem::remove(beside, ignored);
      return;
    }
  }
  std::filesystem::rename(beside, path, ignored);
  if (ignored) std::filesystem::remove(beside, ignored);
} catch (const std::exception&) {
}

}  // namespace qrane::backend::opencl
