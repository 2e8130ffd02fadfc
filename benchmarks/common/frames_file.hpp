// SPDX-License-Identifier: Apache-2.0
// The matrix of a robust PCA problem as qrane's process hands it to a peer: its elements, column by column, nothing
// else.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace qrane::bench {

/// Throws std::runtime_error naming the file.
template <class T>
void write_frames(const std::string& path, const T* data, std::int64_t count) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  const auto size = static_cast<std::size_t>(count);
  if (!file || std::fwrite(data, sizeof(T), size, file.get()) != size || std::fflush(file.get()) != 0)
    throw std::runtime_error(path + " cannot be written");
}

template <class T>
std::vector<T> read_frames(const std::string& path, std::int64_t rows, std::int64_t cols) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  std::vector<T> data(static_cast<std::size_t>(rows * cols));
  if (!file || std::fread(data.data(), sizeof(T), data.size(), file.get()) != data.size())
    throw std::runtime_error(path + " does not hold the matrix");
  return data;
}

}  // namespace qrane::bench
