// SPDX-License-Identifier: Apache-2.0
// A sliding window: rows m, m+1, ... of a long matrix come in at the end of an m x n one, its first rows go out, one of
// each a step, R and d = Qᵀb (and Q where it is kept) brought up to date; steps are queued, and nothing waits for the
// device between them but for the drift that is measured every now and then: the window is lent after each step, and
// factored anew where that has grown too large. A sample is a quarter of the window's rows in steps, 1000 at most; the
// rows lie in the device's memory.
#include <algorithm>

#include "suites/update_cases.hpp"

namespace qrane::bench {

template <class T>
void UpdateCases<T>::time_window(const UpdateShape& update, UpdateCase& result) {
  const auto [m, n] = update.shape;
  const Index p = update.p, samples = 5, steps = std::clamp<Index>(m / 4, 25, 1000);
  const Index rows = m + p * steps * (samples + 1);
  const Matrix<T> a = session_.seeded<T>({rows, n}, UpdatedMatrix<T>::seed);
  const Matrix<T> b = session_.seeded<T>({rows, 1}, UpdatedMatrix<T>::seed + 1);
  const auto window = [&](const Matrix<T>& whole, Index first, Index count) {
    return part_of(whole.view(), first, 0, count, whole.cols());
  };
  Options options;
  options.q = update.form;
  QR<T> f = qr<T>(session_.context(), window(a, 0, m), options);
  f.attach(window(b, 0, m), window(a, 0, m));
  result.steps = steps;
  UpdateTime time;
  time.method = to_string(UpdateMethod::automatic);
  Index first = 0;
  UpdateReport said;
  const auto step = [&, m = m] {  // clang 14 captures no structured bindings
    UpdateOptions<T> in, out;
    in.queued = out.queued = true;
    out.removed = window(a, first, p), out.removed_b = window(b, first, p);
    out.updated = window(a, first + p, m);
    said = f.insert_rows(m, window(a, first + m, p), window(b, first + m, p), in);
    if (f.delete_rows(0, p, out).refreshed) ++result.refreshed;
    first += p;
  };
  note(update, "window");
  for (Index run = -1; run < samples && !session_.interrupted(); ++run) {
    const double ms = session_.time_ms([&] {
      for (Index i = 0; i < steps; ++i) step();
    });
    if (run >= 0) time.samples_ms.push_back(ms / static_cast<double>(steps));
  }
  time.ran = to_string(said.method);
  if (f.refused_updates() != 0) {
    result.outcome = Outcome::failed;
    result.reason = "steps were refused";
  }
  time.errors = check(update, f, window(a, first, m));
  if (result.outcome == Outcome::measured && !time.errors.good()) {
    result.outcome = Outcome::failed;
    result.reason = "an error measure after the last step is above 30";
  }
  for (const std::string& peer : session_.peers("window")) {
    PeerTask task{.task = "window", .shape = update.shape, .precision = precision_, .seed = UpdatedMatrix<T>::seed};
    task.form_q = 1;
    PeerTime answer = ask(peer, task, true);
    if (!answer.samples_ms.empty()) answer.ratio = median(answer.samples_ms) / median(time.samples_ms);
    result.peers.push_back(answer);
  }
  result.times.push_back(time);
}

template void UpdateCases<float>::time_window(const UpdateShape&, UpdateCase&);
template void UpdateCases<double>::time_window(const UpdateShape&, UpdateCase&);

}  // namespace qrane::bench
