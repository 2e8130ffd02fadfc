// SPDX-License-Identifier: Apache-2.0
// Updates of a batch: one call for all of its matrices. Rows are taken back by the opposite update, outside of the
// time; where columns go the factorizations are made anew, since those cannot come back. Against it BatchQR::refactor
// of the updated matrices, in the same form. What is there before and after are parts of one batch of larger matrices
// in device memory. Errors: the worst of the first, the middle and the last matrix.
#include <algorithm>

#include "suites/update_cases.hpp"

namespace qrane::bench {

template <class T>
void UpdateCases<T>::time_batch(const UpdateShape& update, UpdateCase& result) {
  const Context& context = session_.context();
  const Shape before = update.shape, after = shape_after(update);
  const Index count = update.count, p = update.p;
  const Shape all{std::max(before.rows, after.rows), std::max(before.cols, after.cols)};
  const Matrix<T> matrices = session_.seeded<T>({all.rows, all.cols * count}, UpdatedMatrix<T>::seed);
  const auto batch = [&](Index i, Index j, Shape shape) {
    return BatchView<const T>{
        .first = part_of(matrices.view(), i, j, shape.rows, shape.cols), .stride = all.rows * all.cols, .count = count};
  };
  const bool in = update.change == Change::insert_rows;  // at the end; others go out at the front
  const Index row = update.change == Change::delete_rows ? p : 0, col = update.change == Change::delete_columns ? p : 0;
  const BatchView<const T> old = batch(0, 0, before), updated = batch(row, col, after);
  const BatchView<const T> block = batch(in ? before.rows : 0, 0, {p, before.cols});
  Options options;
  options.q = update.form;
  note(update, "batch");
  UpdateTime time;
  time.method = to_string(UpdateMethod::automatic);
  BatchQR<T> f = qr<T>(context, old, options);
  BatchUpdateReport said;
  for (int run = -2; run < 7 && !session_.interrupted(); ++run) {
    const double ms = session_.time_ms([&] {
      said = in                                     ? f.insert_rows(before.rows, block)
             : update.change == Change::delete_rows ? f.delete_rows(0, p, block)
                                                    : f.delete_columns(0, p);
    });
    if (run >= 0) time.samples_ms.push_back(ms);
    if (run == 6) break;
    if (in)
      f.delete_rows(before.rows, p, block);
    else if (update.change == Change::delete_rows)
      f.insert_rows(0, block);
    else
      f = qr<T>(context, old, options);
  }
  time.ran = to_string(said.method);
  BatchQR<T> anew = qr<T>(context, updated, options);
  for (int run = -2; run < 7 && !session_.interrupted(); ++run) {
    const double ms = session_.time_ms([&] { anew.refactor(updated); });
    if (run >= 0) result.refactor_ms.push_back(ms);
  }
  result.refactor_algorithm = to_string(anew.plan().algorithm);
  if (session_.interrupted()) return;
  const Matrix<T> r = context.to_host(f.r()), q = update.form == QForm::thin ? context.to_host(f.q()) : Matrix<T>{};
  const Index k = std::min(after.rows, after.cols);
  for (const Index i : {Index{0}, count / 2, count - 1}) {
    const Matrix<T> a = context.to_host(part_of(updated.first, 0, i * all.cols, after.rows, after.cols));
    const MatrixView<const T> r_i = part_of(r.view(), 0, i * after.cols, k, after.cols);
    const ErrorMeasures errors =
        q.rows() > 0 ? check_factors<T>(a.view(), part_of(q.view(), 0, i * k, after.rows, k), r_i, {2e9})
                     : check_r_alone<T>(a.view(), r_i);
    time.errors.how = errors.how;
    time.errors.residual = worse(errors.residual, time.errors.residual);
    time.errors.orthogonality = worse(errors.orthogonality, time.errors.orthogonality);
  }
  if (!time.errors.good() || said.refused) {
    result.outcome = Outcome::failed;
    result.reason = said.refused ? "rows were refused" : "an error measure is above 30";
  }
  result.times.push_back(time);
}

template void UpdateCases<float>::time_batch(const UpdateShape&, UpdateCase&);
template void UpdateCases<double>::time_batch(const UpdateShape&, UpdateCase&);

}  // namespace qrane::bench
