// SPDX-License-Identifier: Apache-2.0
// The factor object of one matrix, and of a batch.
#include "factors.hpp"

#include <nanobind/stl/string.h>

#include "bindings.hpp"

namespace qrane::python {

namespace {

template <class T>
struct BatchFactor {
  Place& place;
  SessionPtr session;
  BatchQR<T> f;

  ~BatchFactor() {
    const Held held(session);
    const BatchQR<T> last = std::move(f);
  }
  nb::object r() {
    return matrix(f.plan().cols, [&] { return f.r(); });
  }
  nb::object q() {
    return matrix(std::min(f.plan().rows, f.plan().cols), [&] { return f.q(); });
  }
  /// Q_b c_b or Q_bᵀ c_b
  nb::object apply(const Array& c, bool transpose) {
    const auto batch = batch_of<T>(c, "c");
    return matrix(batch.first.cols, [&] {
      MatrixView<const T> one = batch.first;
      Matrix<T> out = one.memory == Memory::host
                          ? Matrix<T>::host(one.rows, one.cols * batch.count)
                          : session->context.template allocate<T>(one.rows, one.cols * batch.count);
      MatrixView<T> target(out.data(), one.rows, one.cols, out.ld(), out.memory());
      const BatchView<T> all{target, out.ld() * one.cols, batch.count, nullptr};
      for (Index i = 0; i < batch.count; ++i, one.data += batch.stride, target.data += all.stride)
        session->context.template copy<T>(one, target);
      transpose ? f.apply_qt(all) : f.apply_q(all);
      return out;
    });
  }
  nb::tuple solve(const Array& b, double rtol, bool least_norm, bool refuse) {
    const auto batch = batch_of<T>(b, "b");
    BatchSolution<T> solution;
    {
      const Held held(session);
      solution = f.solve(batch, {rtol, least_norm, refuse});
    }
    return nb::make_tuple(to_array(place, session, std::move(solution.x), f.count(), batch.first.cols),
                          to_numpy(std::move(solution.rank)), solution.full);
  }
  void refactor(const Array& a) {
    const auto batch = batch_of<T>(a, "a");
    const Held held(session);
    f.refactor(batch);
  }

 private:
  template <class F>
  nb::object matrix(Index each, F&& make) {
    Matrix<T> out;
    {
      const Held held(session);
      out = make();
    }
    return to_array(place, session, std::move(out), f.count(), each);
  }
};

template <class T>
nb::object factor(Place& place, const Array& a, const std::string& form, bool check_finite) {
  Options options;
  options.q = q_form_from_string(form);
  options.check_finite = check_finite;
  if (a.ndim() == 3) {
    const auto batch = batch_of<T>(a, "a");
    const auto made = [&] {
      const Held held(place);
      return std::make_pair(held.session(), qrane::qr<T>(held.context(), batch, options));
    };
    auto [session, f] = made();
    return nb::cast(new BatchFactor<T>{place, std::move(session), std::move(f)}, nb::rv_policy::take_ownership);
  }
  const auto view = matrix_of<T>(a, "a");
  const auto made = [&] {
    const Held held(place);
    return std::make_pair(held.session(), qrane::qr<T>(held.context(), view, options));
  };
  auto [session, f] = made();
  return nb::cast(new Factor<T, QR<T>>(place, std::move(session), std::move(f)), nb::rv_policy::take_ownership);
}

template <class T>
void bind_scalar(nb::module_& m, const char* name, const char* batch_name) {
  bind_factor<T, QR<T>>(m, name);
  using Batch = BatchFactor<T>;
  nb::class_<Batch>(m, batch_name)
      .def("r", &Batch::r)
      .def("q", &Batch::q)
      .def("apply", &Batch::apply)
      .def("solve", &Batch::solve)
      .def("refactor", &Batch::refactor);
}

}  // namespace

void bind_factors(nb::module_& m) {
  bind_scalar<float>(m, "FactorF32", "BatchFactorF32");
  bind_scalar<double>(m, "FactorF64", "BatchFactorF64");
  m.def(
      "factor",
      [](Place& place, const Array& a, const std::string& form, bool check_finite) {
        return by_scalar(a, [&](auto t) { return factor<decltype(t)>(place, a, form, check_finite); });
      },
      nb::keep_alive<0, 1>());
}

}  // namespace qrane::python
