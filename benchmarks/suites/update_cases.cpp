// SPDX-License-Identifier: Apache-2.0
// Updates of a factorization, timed. A QR is updated, taken back by the opposite update, updated again ...: only the
// update in question is timed. One right-hand side is attached, so Q, R and d = Qᵀb are all brought up to date; the
// updated matrix is lent, as to a caller who has it. Against it stands QR::refactor of the updated matrix in device
// memory, in the same form, and the peers' factorizations of a matrix of that shape; each of those is measured once for
// all updates that lead to one shape.
//
// Flops and bytes of the floor, for one right-hand side less, with c the columns of R that change (n - k, for rows n):
//                    flops with Q                     bytes with Q (of p <= n, elements)       without Q
//   rows in          2 c² p + 4 m c p                 2 m c                                    R in and out
//   rows out         2 c² p + 8 m c p                 2 m c
//   columns in       2 c² p + 4 m c p + 8 m n p       m n + m c + 2 m p                        (2 m n p, and A once)
//   columns out      2 c² p + 4 m c p                 2 m c
#include <algorithm>
#include <cmath>

#include "suites/update_cases.hpp"

namespace qrane::bench {
namespace {

/// Error measures by products on the host where that takes some hundredths of a second: there are hundreds of cases.
constexpr Index largest_host_check = Index{1} << 22;

/// How often something is timed that takes `ms`.
int samples_of(double ms) { return std::clamp(static_cast<int>(60 / std::max(ms, 1e-3)), 5, 7); }

}  // namespace

template <class T>
UpdateCases<T>::UpdateCases(Session& session, const std::string& precision)
    : session_(session), precision_(precision) {}

template <class T>
UpdateCase UpdateCases<T>::new_case(const UpdateShape& update) {
  const double m = static_cast<double>(update.shape.rows), n = static_cast<double>(update.shape.cols);
  const double p = static_cast<double>(update.p), k = static_cast<double>(update.k), size = sizeof(T);
  const bool columns = update.change == Change::insert_columns || update.change == Change::delete_columns;
  const double c = columns ? n - k : n;
  UpdateCase result;
  result.update = update;
  result.precision = precision_;
  double flops = 2 * c * c * p, elements = c * c;
  if (update.form != QForm::none) {
    flops += (update.change == Change::delete_rows ? 8 : 4) * m * c * p;
    elements += 2 * m * c;
    if (update.change == Change::insert_columns) flops += 8 * m * n * p, elements += m * (n - c) + 2 * m * p;
  } else if (update.change == Change::insert_columns) {
    flops += 2 * m * n * p, elements += m * (n + p);
  }
  const double count = static_cast<double>(update.count);
  result.floor = session_.floor_for(precision_, count * flops, count * elements * size);
  return result;
}

template <class T>
void UpdateCases<T>::run(const UpdateShape& update, const std::function<void(const UpdateCase&)>& report) {
  if (!update.precision.empty() && update.precision != precision_) return;
  UpdateCase result = new_case(update);
  const std::int64_t matrix =
      update.count * update.shape.rows * update.shape.cols * static_cast<std::int64_t>(sizeof(T));
  result.reason = session_.too_large(session_.on_gpu() ? 2 * matrix : 12 * matrix, 12 * matrix);
  if (result.reason.empty()) result.reason = session_.out_of_time();
  if (result.reason.empty() && update.kind != UpdateKind::window)
    result.reason = session_.too_long(precision_, factor_flops(shape_after(update)), static_cast<double>(matrix));
  if (!result.reason.empty()) {
    result.outcome = Outcome::left_out;
    report(result);
    return;
  }
  try {
    switch (update.kind) {
      case UpdateKind::time: time(update, result); break;
      case UpdateKind::accuracy: measure_accuracy(update, result); break;
      case UpdateKind::window: time_window(update, result); break;
      case UpdateKind::batch: time_batch(update, result); break;
    }
  } catch (const Error& fault) {
    const bool lacking = fault.code() == ErrorCode::out_of_memory || fault.code() == ErrorCode::unavailable;
    result.outcome = lacking ? Outcome::left_out : Outcome::failed;
    result.reason = fault.what();
    forget();
    if (fault.code() == ErrorCode::device) throw;
  }
  if (!session_.interrupted()) report(result);
}

template <class T>
UpdatableQR<T>& UpdateCases<T>::factored(const UpdateShape& update) {
  const Shape shape = update.shape;
  const bool attached = carries_right_hand_side(update);
  if (f_ && shape_.rows == shape.rows && shape_.cols == shape.cols && form_ == update.form && attached_ == attached)
    return *f_;
  const bool same_matrix = a_.rows() == shape.rows && a_.cols() == shape.cols;
  f_.reset();
  paper_.reset();
  transfers_ = {};
  if (!same_matrix) {
    a_ = {}, b_ = {};
    a_ = session_.seeded<T>(shape, UpdatedMatrix<T>::seed);
    b_ = session_.seeded<T>({shape.rows, 1}, UpdatedMatrix<T>::seed + 1);
  }
  f_.emplace(fresh(update.form, attached));
  shape_ = shape, form_ = update.form, attached_ = attached;
  return *f_;
}

template <class T>
UpdatableQR<T> UpdateCases<T>::fresh(QForm form, bool attached) {
  Options options;
  options.q = form;
  UpdatableQR<T> f = updatable_qr(session_.context(), a_, options);
  if (attached) f.attach(std::as_const(b_).view(), std::as_const(a_).view());
  return f;
}

template <class T>
paper::Updates<T> UpdateCases<T>::fresh_paper(QForm form, bool attached) {
  paper::Updates<T> made = paper::make_updates<T>(session_.context(), std::as_const(a_).view(), form);
  if (attached) made.f.attach(std::as_const(b_).view(), std::as_const(a_).view());
  return made;
}

template <class T>
UpdateSubject<T> UpdateCases<T>::subject(const UpdateShape& update, UpdateWay way) {
  UpdatableQR<T>& f = factored(update);
  if (way == UpdateWay::automatic) return {way, f, nullptr};
  detail::check(update.form == QForm::thin || update.form == QForm::none, ErrorCode::unavailable,
                "the paper's methods take a thin Q, or R alone");
  if (!paper_) paper_ = fresh_paper(form_, attached_);
  return {way, paper_->f, &*paper_};
}

template <class T>
void UpdateCases<T>::take_back(const UpdateSubject<T>& subject, const UpdatedMatrix<T>& matrix) {
  if (!matrix.back(subject.f).refused) return;
  if (subject.paper == nullptr)
    subject.f = fresh(form_, attached_);
  else
    *subject.paper = fresh_paper(form_, attached_);
}

template <class T>
double UpdateCases<T>::time_ms(const UpdateSubject<T>& subject, const std::function<void()>& work) const {
  return subject.paper == nullptr ? session_.time_ms(work) : subject.paper->time_ms(work);
}

template <class T>
void UpdateCases<T>::refresh(UpdatableQR<T>& f) {
  f.refactor(std::as_const(a_).view());
  if (attached_) f.attach(std::as_const(b_).view(), std::as_const(a_).view());
}

template <class T>
void UpdateCases<T>::time(const UpdateShape& update, UpdateCase& result) {
  const Shape after = shape_after(update);
  note(update, "peers");
  add_peers(update, result);
  {
    factored(update);
    const UpdatedMatrix<T> matrix(session_, update, a_, b_);
    for (const UpdateWay way : update.ways) {
      if (session_.interrupted()) return;
      note(update, to_string(way));
      result.times.push_back(time_way(update, subject(update, way), matrix, result));
    }
    if (update.paper_protocol && precision_ == "f32" && !result.times.front().samples_ms.empty()) {
      note(update, "the paper's protocol");
      time_protocol(update, matrix, result);
    }
    note(update, "factoring anew");
    if (result.times.front().ran == to_string(UpdateMethod::refactor)) {
      time_by_turns(update, matrix, result);
    } else {
      const Refactored& anew = refactored(after, update.form, matrix.after());
      result.refactor_ms = anew.samples_ms;
      result.refactor_algorithm = anew.algorithm;
    }
  }
  const double ms = result.median_ms();
  for (PeerTime& peer : result.peers)
    if (!peer.samples_ms.empty() && ms > 0) peer.ratio = median(peer.samples_ms) / ms;
  if (result.times.front().samples_ms.empty()) {
    result.outcome = Outcome::left_out;
    result.reason = result.times.front().reason;
  }
  for (const UpdateTime& one : result.times)
    if (!one.samples_ms.empty() && !one.errors.good()) {
      result.outcome = Outcome::failed;
      result.reason = "an error measure of " + one.method + " is above 30";
    }
}

template <class T>
UpdateTime UpdateCases<T>::time_way(const UpdateShape& update, const UpdateSubject<T>& subject,
                                    const UpdatedMatrix<T>& matrix, UpdateCase& result) {
  UpdatableQR<T>& f = subject.f;
  UpdateTime time;
  time.method = to_string(subject.way);
  UpdateReport said;
  const auto once = [&] { return time_ms(subject, [&] { said = subject.forward(matrix); }); };
  try {
    once();
  } catch (const Error& fault) {  // refused: the factorization is as it was
    if (fault.code() == ErrorCode::device) throw;
    time.reason = fault.what();
    return time;
  }
  take_back(subject, matrix);
  const double guess = once();
  const bool anew = said.method == UpdateMethod::refactor;  // timed by turns
  for (int run = 0; run < (anew ? 1 : samples_of(guess)) && !session_.interrupted(); ++run) {
    take_back(subject, matrix);
    time.samples_ms.push_back(once());
  }
  time.ran = subject.paper == nullptr ? to_string(said.method) : time.method;
  for (const UpdateCandidate& candidate : said.candidates)
    if (candidate.method == said.method && candidate.excluded.empty()) time.predicted_ms = candidate.predicted_ms;
  if (subject.way == update.ways.front()) result.candidates = said.candidates;
  take_back(subject, matrix);
  refresh(f);
  subject.forward(matrix);
  time.errors = check(update, f, matrix.after());
  take_back(subject, matrix);
  if (update.form == QForm::implicit) refresh(f);  // as short as it was
  if (update.stages) time.stages = time_stages(subject, matrix);
  return time;
}

/// An update that factors anew against factoring anew: both alike, so both by turns, since the load of host and device
/// changes meanwhile.
template <class T>
void UpdateCases<T>::time_by_turns(const UpdateShape& update, const UpdatedMatrix<T>& matrix, UpdateCase& result) {
  const UpdateSubject<T> product = subject(update, UpdateWay::automatic);
  Options options;
  options.q = update.form;
  const MatrixView<const T> after = matrix.after();
  QR<T> anew = qr<T>(session_.context(), after, options);
  result.refactor_algorithm = to_string(anew.plan().algorithm);
  std::vector<double>& samples = result.times.front().samples_ms;
  const int runs = samples_of(median(samples));
  samples.clear(), result.refactor_ms.clear();
  for (int run = -1; run < runs && !session_.interrupted(); ++run) {
    const double with_it = session_.time_ms([&] { product.forward(matrix); });
    take_back(product, matrix);
    const double alone = session_.time_ms([&] { anew.refactor(after); });
    if (run < 0) continue;
    samples.push_back(with_it);
    result.refactor_ms.push_back(alone);
  }
  Refactored& known = refactored_[{after.rows, after.cols, static_cast<int>(update.form)}];
  if (known.samples_ms.empty()) known = {result.refactor_algorithm, result.refactor_ms};
}

template <class T>
std::vector<UpdateStage> UpdateCases<T>::time_stages(const UpdateSubject<T>& subject, const UpdatedMatrix<T>& matrix) {
  std::vector<UpdateStage> stages;
  std::vector<std::vector<double>> samples;
  subject.f.time_updates(true);
  for (int run = 0; run < 5 && !session_.interrupted(); ++run) {
    stages = subject.forward(matrix).stages;
    samples.resize(stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i) samples[i].push_back(stages[i].ms);
    take_back(subject, matrix);
  }
  subject.f.time_updates(false);
  for (std::size_t i = 0; i < stages.size(); ++i) stages[i].ms = median(samples[i]);
  return stages;
}

template <class T>
ErrorMeasures UpdateCases<T>::check(const UpdateShape& update, const UpdatableQR<T>& f, MatrixView<const T> after) {
  const Context& context = session_.context();
  const bool small = after.rows * after.cols <= largest_host_check;
  if (small && has_q(update.form)) {
    const Matrix<T> q = context.to_host(f.q()), r = context.to_host(f.r()), a = context.to_host(after);
    return check_factors<T>(a.view(), q.view(), r.view(), {2e9});
  }
  if (small && update.form == QForm::none && can_check_r_alone(after.rows, after.cols, ReferenceR::gram, {2e10})) {
    const Matrix<T> r = context.to_host(f.r()), a = context.to_host(after);
    return check_r_alone<T>(a.view(), r.view());
  }
  ErrorMeasures errors;
  errors.how = "drift, by the library on the device";
  try {
    errors.residual = f.drift(after);
  } catch (const Error& fault) {
    if (fault.code() != ErrorCode::unavailable) throw;
    errors.how = std::string("not checked: ") + fault.what();
  }
  return errors;
}

template <class T>
const typename UpdateCases<T>::Refactored& UpdateCases<T>::refactored(Shape after, QForm form, MatrixView<const T> a) {
  Refactored& known = refactored_[{after.rows, after.cols, static_cast<int>(form)}];
  if (!known.samples_ms.empty()) return known;
  Options options;
  options.q = form;
  QR<T> f = qr<T>(session_.context(), a, options);
  known.algorithm = to_string(f.plan().algorithm);
  const double guess = session_.time_ms([&] { f.refactor(a); });
  for (int run = 0; run < samples_of(guess) && !session_.interrupted(); ++run)
    known.samples_ms.push_back(session_.time_ms([&] { f.refactor(a); }));
  return known;
}

template <class T>
void UpdateCases<T>::add_peers(const UpdateShape& update, UpdateCase& result) {
  const Shape after = shape_after(update);
  const int q = update.form == QForm::thin ? 1 : update.form == QForm::full ? 2 : 0;
  for (const std::string& peer : session_.peers("qr")) {
    if (peer == "cublas-cholqr2") continue;
    PeerTask task{.task = "qr", .shape = after, .precision = precision_, .seed = UpdatedMatrix<T>::seed};
    task.form_q = std::max(q, 1);  // R alone: the part of that which is the factors
    task.max_seconds = peer_seconds;
    task.repeats = peer == "lapack" ? 1 : 3;  // a processor's run takes a hundred times a GPU's
    result.peers.push_back(ask(peer, task, q != 0));
  }
  for (const std::string& peer : session_.peers("update")) {
    if (!has_q(update.form)) continue;  // the peer updates explicit factors
    PeerTask task{.task = "update", .shape = update.shape, .precision = precision_, .seed = UpdatedMatrix<T>::seed};
    task.form_q = q;
    task.max_seconds = peer_seconds;
    task.repeats = 1;
    task.more = detail::concat(" change=", without_blanks(to_string(update.change)), " k=", update.k, " p=", update.p);
    result.peers.push_back(ask(peer, task, true));
  }
}

template <class T>
PeerTime UpdateCases<T>::ask(const std::string& peer, const PeerTask& task, bool with_q) {
  PeerReply& known =
      asked_[detail::concat(peer, " ", task.shape.rows, " ", task.shape.cols, " ", task.form_q, task.more)];
  if (known.samples_ms.empty() && known.reason.empty()) {
    try {
      const Message message = session_.measure_peer(peer, task);
      known.samples_ms = message.numbers(message.has("total_ms") ? "total_ms" : "factor_ms");
      if (message.has("form_q_ms")) known.form_q_ms = message.numbers("form_q_ms");
    } catch (const std::exception& fault) {
      known.reason = fault.what();
    }
  }
  PeerTime time{peer, known.samples_ms, 0, known.reason};
  for (std::size_t i = 0; with_q && i < time.samples_ms.size() && i < known.form_q_ms.size(); ++i)
    time.samples_ms[i] += known.form_q_ms[i];
  return time;
}

template <class T>
void UpdateCases<T>::forget() {
  f_.reset();
  paper_.reset();
  transfers_ = {};
  a_ = {}, b_ = {};
}

template <class T>
double UpdateCases<T>::factor_flops(Shape shape) {
  const double m = static_cast<double>(std::max(shape.rows, shape.cols));
  const double n = static_cast<double>(std::min(shape.rows, shape.cols));
  return 4 * m * n * n;
}

template <class T>
void UpdateCases<T>::note(const UpdateShape& update, const std::string& what) const {
  session_.progress(detail::concat(update.figure, ", ", to_string(update.change), " ", update.shape.rows, " x ",
                                   update.shape.cols, ", k ", update.k, ", p ", update.p, " ", precision_, ": ", what));
}

template class UpdateCases<float>;
template class UpdateCases<double>;

struct UpdateRunner::Parts {
  explicit Parts(Session& session) : single(session, "f32"), twice(session, "f64") {}
  UpdateCases<float> single;
  UpdateCases<double> twice;
};

UpdateRunner::UpdateRunner(Session& session) : parts_(std::make_unique<Parts>(session)) {}
UpdateRunner::~UpdateRunner() = default;

void UpdateRunner::run(const UpdateShape& update, const std::string& precision,
                       const std::function<void(const UpdateCase&)>& report) {
  if (precision == "f32")
    parts_->single.run(update, report);
  else
    parts_->twice.run(update, report);
}

void UpdateRunner::forget() {
  parts_->single.forget();
  parts_->twice.forget();
}

}  // namespace qrane::bench
