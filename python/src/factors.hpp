// SPDX-License-Identifier: Apache-2.0
// What the objects of a factorization and of one that changes have in common. F is QR<T> or UpdatableQR<T>.
#pragma once

#include <utility>

#include "arrays.hpp"

namespace qrane::python {

template <class T, class F>
class Factor {
 public:
  Factor(Place& place, SessionPtr session, F&& f) : place_(place), session_(std::move(session)), f_(std::move(f)) {}
  ~Factor() {
    const Held held(session_);
    const F last = std::move(f_);
  }
  nb::tuple shape() const { return nb::make_tuple(f_.rows(), f_.cols()); }
  nb::object r(bool full) {
    return matrix([&] { return f_.r(full ? Columns::full : Columns::thin); });
  }
  nb::object q(bool full) {
    return matrix([&] { return f_.q(full ? Columns::full : Columns::thin); });
  }
  nb::object range_basis(double rtol) {
    return matrix([&] { return qrane::range_basis(f_, rtol); });
  }
  nb::object null_space_basis(double rtol) {
    return matrix([&] { return qrane::null_space_basis(f_, rtol); });
  }
  /// Q c or Qᵀ c; from the right c Q or c Qᵀ
  nb::object apply(const Array& c, bool transpose, bool right) {
    const auto view = matrix_of<T>(c, "c");
    return matrix([&] {
      Matrix<T> out = copy_of<T>(session_->context, view);
      const Side side = right ? Side::right : Side::left;
      transpose ? f_.apply_qt(out.view(), side) : f_.apply_q(out.view(), side);
      return out;
    });
  }
  /// (x, rank, min(m, n))
  nb::tuple solve(const Array& b, double rtol, bool least_norm, bool refuse) {
    const auto view = matrix_of<T>(b, "b");
    return solution([&] { return f_.solve(view, SolveOptions{rtol, least_norm, refuse}); });
  }
  Index rank(double rtol) {
    const Held held(session_);
    return f_.rank(rtol).rank;
  }
  double condition() {
    const Held held(session_);
    return f_.condition();
  }
  /// (sign, logarithm of the magnitude)
  nb::tuple determinant() {
    Determinant d;
    {
      const Held held(session_);
      d = qrane::determinant(f_);
    }
    return nb::make_tuple(d.sign, d.log_magnitude);
  }
  std::string explain() const { return f_.plan().explain(); }
  void refactor(const Array& a) {
    const auto view = matrix_of<T>(a, "a");
    const Held held(session_);
    f_.refactor(view);
  }

 protected:
  template <class Make>
  nb::object matrix(Make&& make) {
    Matrix<T> out;
    {
      const Held held(session_);
      out = make();
    }
    return to_array(place_, session_, std::move(out));
  }
  template <class Make>
  nb::tuple solution(Make&& make) {
    Solution<T> out;
    {
      const Held held(session_);
      out = make();
    }
    return nb::make_tuple(to_array(place_, session_, std::move(out.x)), out.rank, out.full);
  }

  Place& place_;  // kept alive by Python (keep_alive)
  SessionPtr session_;
  F f_;
};

template <class T, class F, class Bound = Factor<T, F>>
nb::class_<Bound> bind_factor(nb::module_& m, const char* name) {
  nb::class_<Bound> bound(m, name);
  bound.def_prop_ro("shape", [](Bound& f) { return f.shape(); })
      .def("r", [](Bound& f, bool full) { return f.r(full); })
      .def("q", [](Bound& f, bool full) { return f.q(full); })
      .def("range_basis", [](Bound& f, double rtol) { return f.range_basis(rtol); })
      .def("null_space_basis", [](Bound& f, double rtol) { return f.null_space_basis(rtol); })
      .def("apply", [](Bound& f, const Array& c, bool transpose, bool right) { return f.apply(c, transpose, right); })
      .def("solve", [](Bound& f, const Array& b, double rtol, bool least_norm,
                       bool refuse) { return f.solve(b, rtol, least_norm, refuse); })
      .def("rank", [](Bound& f, double rtol) { return f.rank(rtol); })
      .def("condition", [](Bound& f) { return f.condition(); })
      .def("determinant", [](Bound& f) { return f.determinant(); })
      .def("explain", [](Bound& f) { return f.explain(); })
      .def("refactor", [](Bound& f, const Array& a) { f.refactor(a); });
  return bound;
}

}  // namespace qrane::python
