// SPDX-License-Identifier: Apache-2.0
// Functions of one call: qr and least squares of one matrix or a batch, SVD, column-pivoted QR.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"

namespace qrane::python {

namespace {

/// Results for JAX, which knows no stream of ours, are complete when they are returned.
void finish(const Held& held, const Place& place) {
  if (place.library() == Library::jax) held.context().synchronize();
}

/// (R,) with form "none", (Q, R) with "thin" and "full", (packed, tau) with "lapack".
template <class T>
nb::tuple qr(Place& place, const Array& a, const std::string& form, bool check_finite) {
  const auto view = matrix_of<T>(a, "a");
  Options options;
  options.check_finite = check_finite;
  options.q = form == "full" ? QForm::implicit : q_form_from_string(form);
  Matrix<T> first, second;
  SessionPtr session;
  {
    const Held held(place);
    session = held.session();
    const QR<T> f = qrane::qr<T>(held.context(), view, options);
    if (options.q == QForm::lapack) {
      Reflectors<T> reflectors = qrane::reflectors(f);
      first = std::move(reflectors.packed);
      second = std::move(reflectors.tau);
    } else {
      const Columns columns = form == "full" ? Columns::full : Columns::thin;
      if (options.q != QForm::none) first = f.q(columns);
      second = f.r(columns);
    }
    finish(held, place);
  }
  nb::object last = to_array(place, session, std::move(second));
  if (options.q == QForm::none) return nb::make_tuple(last);
  return nb::make_tuple(to_array(place, session, std::move(first)), last);
}

/// The same for a batch; form "none" or "thin".
template <class T>
nb::tuple batch_qr(Place& place, const Array& a, const std::string& form, bool check_finite) {
  const auto batch = batch_of<T>(a, "a");
  Options options;
  options.check_finite = check_finite;
  options.q = q_form_from_string(form);
  const Index n = batch.first.cols;
  Matrix<T> q, r;
  SessionPtr session;
  {
    const Held held(place);
    session = held.session();
    const BatchQR<T> f = qrane::qr<T>(held.context(), batch, options);
    if (options.q != QForm::none) q = f.q();
    r = f.r();
    finish(held, place);
  }
  nb::object last = to_array(place, session, std::move(r), batch.count, n);
  if (options.q == QForm::none) return nb::make_tuple(last);
  return nb::make_tuple(to_array(place, session, std::move(q), batch.count, std::min(batch.first.rows, n)), last);
}

SolveOptions solve_options(double rtol, bool least_norm, bool refuse) {
  SolveOptions options;
  options.relative_tolerance = rtol;
  options.least_norm = least_norm;
  options.refuse_deficient = refuse;
  return options;
}

/// (x, rank, min(m, n), residual norms)
template <class T>
nb::tuple least_squares(Place& place, const Array& a, const Array& b, double rtol, bool least_norm, bool refuse,
                        bool check_finite) {
  const auto matrix = matrix_of<T>(a, "a");
  const auto right = matrix_of<T>(b, "b");
  LeastSquaresOptions options;
  options.solve = solve_options(rtol, least_norm, refuse);
  options.check_finite = check_finite;
  Solution<T> solution;
  SessionPtr session;
  {
    const Held held(place);
    session = held.session();
    solution = qrane::least_squares<T>(held.context(), matrix, right, options);
    finish(held, place);
  }
  return nb::make_tuple(to_array(place, session, std::move(solution.x)), solution.rank, solution.full,
                        to_numpy(std::move(solution.residual_norms)));
}

/// (x, ranks, min(m, n)) for batches of matrices and right-hand sides
template <class T>
nb::tuple batch_least_squares(Place& place, const Array& a, const Array& b, double rtol, bool least_norm, bool refuse,
                              bool check_finite) {
  const auto matrices = batch_of<T>(a, "a");
  const auto right = batch_of<T>(b, "b");
  Options options;
  options.check_finite = check_finite;
  BatchSolution<T> solution;
  SessionPtr session;
  {
    const Held held(place);
    session = held.session();
    const BatchQR<T> f = qrane::qr<T>(held.context(), matrices, options);
    solution = f.solve(right, solve_options(rtol, least_norm, refuse));
    finish(held, place);
  }
  return nb::make_tuple(to_array(place, session, std::move(solution.x), matrices.count, right.first.cols),
                        to_numpy(std::move(solution.rank)), solution.full);
}

/// (U, s, Vh), or (s,) without vectors
template <class T>
nb::tuple svd(Place& place, const Array& a, bool vectors, bool check_finite) {
  const auto view = matrix_of<T>(a, "a");
  Svd<T> out;
  SessionPtr session;
  {
    const Held held(place);
    session = held.session();
    SvdOptions options;
    options.vectors = vectors;
    options.check_finite = check_finite;
    out = qrane::svd<T>(held.context(), view, options);
    finish(held, place);
  }
  nb::object s = to_array(place, session, std::move(out.s));
  if (!vectors) return nb::make_tuple(s);
  return nb::make_tuple(to_array(place, session, std::move(out.u)), s, to_array(place, session, std::move(out.vt)));
}

/// (Q or None, R, permutation, rank)
template <class T>
nb::tuple pivoted_qr(Place& place, const Array& a, const std::string& form, double rtol, Index max_rank, bool truncate,
                     const std::string& pivoting, bool check_finite) {
  const auto view = matrix_of<T>(a, "a");
  PivotOptions options;
  options.relative_tolerance = rtol;
  options.max_rank = max_rank;
  options.truncate = truncate;
  options.q = q_form_from_string(form);
  options.pivoting = pivoting_from_string(pivoting);
  options.check_finite = check_finite;
  Matrix<T> q, r;
  std::vector<Index> permutation;
  Index rank = 0;
  SessionPtr session;
  {
    const Held held(place);
    session = held.session();
    const PivotedQR<T> f = qrane::pivoted_qr<T>(held.context(), view, options);
    if (options.q != QForm::none) q = f.q();
    r = f.r();
    permutation = f.permutation();
    rank = f.rank();
    finish(held, place);
  }
  nb::object first = nb::none();
  if (options.q != QForm::none) first = to_array(place, session, std::move(q));
  return nb::make_tuple(first, to_array(place, session, std::move(r)), to_numpy(std::move(permutation)), rank);
}

}  // namespace

void bind_dense(nb::module_& m) {
  m.def("qr", [](Place& place, const Array& a, const std::string& form, bool check_finite) {
    return by_scalar(a, [&](auto t) { return qr<decltype(t)>(place, a, form, check_finite); });
  });
  m.def("batch_qr", [](Place& place, const Array& a, const std::string& form, bool check_finite) {
    return by_scalar(a, [&](auto t) { return batch_qr<decltype(t)>(place, a, form, check_finite); });
  });
  m.def("least_squares",
        [](Place& place, const Array& a, const Array& b, double rtol, bool least_norm, bool refuse, bool check_finite) {
          return by_scalar(a, [&](auto t) {
            return least_squares<decltype(t)>(place, a, b, rtol, least_norm, refuse, check_finite);
          });
        });
  m.def("batch_least_squares",
        [](Place& place, const Array& a, const Array& b, double rtol, bool least_norm, bool refuse, bool check_finite) {
          return by_scalar(a, [&](auto t) {
            return batch_least_squares<decltype(t)>(place, a, b, rtol, least_norm, refuse, check_finite);
          });
        });
  m.def("svd", [](Place& place, const Array& a, bool vectors, bool check_finite) {
    return by_scalar(a, [&](auto t) { return svd<decltype(t)>(place, a, vectors, check_finite); });
  });
  m.def("pivoted_qr", [](Place& place, const Array& a, const std::string& form, double rtol, Index max_rank,
                         bool truncate, const std::string& pivoting, bool check_finite) {
    return by_scalar(a, [&](auto t) {
      return pivoted_qr<decltype(t)>(place, a, form, rtol, max_rank, truncate, pivoting, check_finite);
    });
  });
}

}  // namespace qrane::python
