// SPDX-License-Identifier: Apache-2.0
// A factorization whose matrix changes. Reports are dictionaries.
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "factors.hpp"

namespace qrane::python {

namespace {

nb::dict to_dict(const UpdateReport& report) {
  nb::dict out;
  out["method"] = to_string(report.method);
  out["refused"] = report.refused;
  out["fell_back"] = report.fell_back;
  out["explanation"] = report.explain();
  return out;
}

template <class T>
class Updatable : public Factor<T, UpdatableQR<T>> {
  using Base = Factor<T, UpdatableQR<T>>;
  using Base::f_, Base::session_;

 public:
  using Base::Base;
  nb::dict insert_rows(Index k, const Array& u, const Array& e, bool check_finite) {
    const auto rows = matrix_of<T>(u, "u");
    const auto sides = optional(e, "b");
    return update([&](const UpdateOptions& o) { return f_.insert_rows(k, rows, sides, o); }, check_finite);
  }
  nb::dict delete_rows(Index k, Index p, const Array& removed, const Array& removed_b) {
    const auto rows = optional(removed, "removed");
    const auto sides = optional(removed_b, "removed_b");
    return update([&](const UpdateOptions& o) { return f_.delete_rows(k, p, rows, sides, o); }, false);
  }
  nb::dict insert_columns(Index k, const Array& u, const Array& updated, bool check_finite) {
    const auto columns = matrix_of<T>(u, "u");
    const auto whole = optional(updated, "updated");
    return update([&](const UpdateOptions& o) { return f_.insert_columns(k, columns, o, whole); }, check_finite);
  }
  nb::dict delete_columns(Index k, Index p) {
    return update([&](const UpdateOptions& o) { return f_.delete_columns(k, p, o); }, false);
  }
  nb::dict rank_k_update(const Array& u, const Array& v, const Array& updated, bool check_finite) {
    const auto left = matrix_of<T>(u, "u"), right = matrix_of<T>(v, "v");
    const auto whole = optional(updated, "updated");
    return update([&](const UpdateOptions& o) { return f_.rank_k_update(left, right, o, whole); }, check_finite);
  }
  void attach(const Array& b, const Array& a) {
    const auto sides = matrix_of<T>(b, "b");
    const auto matrix = optional(a, "a");
    const Held held(session_);
    f_.attach(sides, matrix);
  }
  nb::tuple solve_attached(double rtol, bool least_norm, bool refuse) {
    return this->solution([&] { return f_.solve(SolveOptions{rtol, least_norm, refuse}); });
  }
  nb::object residual_norms() {
    std::vector<double> norms;
    {
      const Held held(session_);
      norms = f_.residual_norms();
    }
    return to_numpy(std::move(norms));
  }
  double drift(const Array& a) {
    const auto matrix = optional(a, "a");
    const Held held(session_);
    return f_.drift(matrix);
  }

 private:
  /// None is an array that is not valid.
  static MatrixView<const T> optional(const Array& a, const char* name) {
    return a.is_valid() ? matrix_of<T>(a, name) : MatrixView<const T>{};
  }
  template <class Change>
  nb::dict update(Change&& change, bool check_finite) {
    UpdateOptions options;
    options.check_finite = check_finite;
    UpdateReport report;
    {
      const Held held(session_);
      report = change(options);
    }
    return to_dict(report);
  }
};

template <class T>
void bind_scalar(nb::module_& m, const char* name) {
  using Bound = Updatable<T>;
  bind_factor<T, UpdatableQR<T>, Bound>(m, name)
      .def("insert_rows", &Bound::insert_rows, nb::arg("k"), nb::arg("u"), nb::arg("e").none(), nb::arg("check_finite"))
      .def("delete_rows", &Bound::delete_rows, nb::arg("k"), nb::arg("p"), nb::arg("removed").none(),
           nb::arg("removed_b").none())
      .def("insert_columns", &Bound::insert_columns, nb::arg("k"), nb::arg("u"), nb::arg("updated").none(),
           nb::arg("check_finite"))
      .def("delete_columns", &Bound::delete_columns)
      .def("rank_k_update", &Bound::rank_k_update, nb::arg("u"), nb::arg("v"), nb::arg("updated").none(),
           nb::arg("check_finite"))
      .def("attach", &Bound::attach, nb::arg("b"), nb::arg("a").none())
      .def("solve_attached", &Bound::solve_attached)
      .def("residual_norms", &Bound::residual_norms)
      .def("drift", &Bound::drift, nb::arg("a").none());
}

template <class T, class Make>
nb::object made(Place& place, Make&& make) {
  const auto held_and_made = [&] {
    const Held held(place);
    return std::make_pair(held.session(), make(held.context()));
  };
  auto [session, f] = held_and_made();
  return nb::cast(new Updatable<T>(place, std::move(session), std::move(f)), nb::rv_policy::take_ownership);
}

}  // namespace

void bind_updatable(nb::module_& m) {
  bind_scalar<float>(m, "UpdatableF32");
  bind_scalar<double>(m, "UpdatableF64");
  m.def(
      "updatable",
      [](Place& place, const Array& a, const std::string& form, bool check_finite) {
        return by_scalar(a, [&](auto t) {
          using T = decltype(t);
          Options options;
          options.q = q_form_from_string(form);
          options.check_finite = check_finite;
          const auto view = matrix_of<T>(a, "a");
          return made<T>(place, [&](const Context& c) { return updatable_qr(qrane::qr<T>(c, view, options)); });
        });
      },
      nb::keep_alive<0, 1>());
  m.def(
      "updatable_from_factors",
      [](Place& place, const Array& q, const Array& r, const std::string& form) {
        return by_scalar(q, [&](auto t) {
          using T = decltype(t);
          const auto orthonormal = matrix_of<T>(q, "Q");
          const auto triangle = matrix_of<T>(r, "R");
          return made<T>(place, [&](const Context& c) {
            return updatable_qr<T>(c, orthonormal, triangle, q_form_from_string(form));
          });
        });
      },
      nb::keep_alive<0, 1>());
}

}  // namespace qrane::python
