// SPDX-License-Identifier: Apache-2.0
// Sparse QR: SciPy's compressed rows or columns, with indices of 32 or 64 bits where they lie.
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "bindings.hpp"

namespace qrane::python {

namespace {

sparse::Indices indices_of(const Array& a, const char* name) {
  if (a.dtype() == nb::dtype<std::int32_t>()) return static_cast<const std::int32_t*>(a.data());
  detail::check(a.dtype() == nb::dtype<std::int64_t>(), ErrorCode::invalid_argument, name,
                " must have 32 or 64 bits each");
  return static_cast<const std::int64_t*>(a.data());
}

/// A compressed matrix as SciPy has it: by columns, or else by rows.
struct Compressed {
  Index rows, cols;
  bool by_columns;
  Array pointers, indices, values;

  template <class T>
  sparse::SparseView<T> view() const {
    const sparse::Indices p = indices_of(pointers, "indptr"), i = indices_of(indices, "indices");
    const T* const v = static_cast<const T*>(values.data());
    return by_columns ? sparse::by_columns<T>(rows, cols, p, i, v) : sparse::by_rows<T>(rows, cols, p, i, v);
  }
};

struct Wishes {
  std::string ordering, processor;
  double absolute_tolerance;
  bool detect_rank, refuse_deficient, keep_q, check_finite;

  sparse::AnalyzeOptions analyze() const {
    sparse::AnalyzeOptions options;
    options.ordering = sparse::ordering_from_string(ordering);
    return options;
  }
  sparse::FactorOptions factor() const {
    sparse::FactorOptions options;
    options.absolute_tolerance = absolute_tolerance;
    options.detect_rank = detect_rank;
    options.refuse_deficient = refuse_deficient;
    options.q = keep_q ? sparse::KeepQ::keep : sparse::KeepQ::discard;
    options.check_finite = check_finite;
    options.processor = sparse::processor_from_string(processor);
    options.on_progress = [](double, double) { PollScope::poll(); };
    return options;
  }
};

template <class T>
class SparseFactor {
 public:
  SparseFactor(Place& place, SessionPtr session, sparse::Factor<T>&& f)
      : place_(place), session_(std::move(session)), f_(std::move(f)) {}
  ~SparseFactor() {
    const Held held(session_);
    const sparse::Factor<T> last = std::move(f_);
  }

  nb::tuple shape() const { return nb::make_tuple(f_.rows(), f_.cols()); }
  Index rank() const { return f_.rank(); }
  nb::object permutation() { return to_numpy(f_.permutation()); }
  /// (pointers, row indices, values, rows)
  nb::tuple r() {
    sparse::SparseMatrix<T> out;
    {
      const Held held(session_);
      out = f_.r();
    }
    return nb::make_tuple(to_numpy(std::move(out.pointers)), to_numpy(std::move(out.row_indices)),
                          to_numpy(std::move(out.values)), out.rows);
  }
  /// Q c or Qᵀ c
  nb::object apply(const Array& c, bool transpose) {
    const auto view = matrix_of<T>(c, "c");
    Matrix<T> out;
    {
      const Held held(session_);
      out = copy_of<T>(session_->context, view);
      transpose ? f_.apply_qt(out.view()) : f_.apply_q(out.view());
    }
    return to_array(place_, session_, std::move(out));
  }
  /// (x, rank, residual norms)
  nb::tuple solve(const Array& b, bool transposed) {
    const auto view = matrix_of<T>(b, "b");
    Solution<T> out;
    {
      const Held held(session_);
      out = transposed ? f_.solve_transposed(view) : f_.solve(view);
    }
    return nb::make_tuple(to_array(place_, session_, std::move(out.x)), out.rank,
                          to_numpy(std::move(out.residual_norms)));
  }
  void refactor(const Array& values) {
    detail::check(values.dtype() == nb::dtype<T>(), ErrorCode::invalid_argument,
                  "the new values have another type than the old ones");
    const T* const v = static_cast<const T*>(values.data());
    const Held held(session_);
    f_.refactor(v);
  }
  nb::dict facts() const {
    const sparse::FactorFacts& facts = f_.facts();
    nb::dict out;
    out["on_device"] = facts.on_device;
    out["threads"] = facts.threads;
    out["seconds"] = facts.seconds;
    out["flops"] = facts.flops;
    out["bytes"] = facts.bytes;
    out["absolute_tolerance"] = facts.absolute_tolerance;
    return out;
  }

 private:
  Place& place_;
  SessionPtr session_;
  sparse::Factor<T> f_;
};

template <class T>
nb::object factor(Place& place, const Compressed& a, const Wishes& wishes) {
  const auto view = a.view<T>();
  const auto made = [&] {
    const Held held(place);
    const sparse::Analysis analysis = sparse::analyze(held.context(), view, wishes.analyze());
    return std::make_pair(held.session(), analysis.factor(view, wishes.factor()));
  };
  auto [session, f] = made();
  return nb::cast(new SparseFactor<T>(place, std::move(session), std::move(f)), nb::rv_policy::take_ownership);
}

/// (x, rank, min(m, n), residual norms)
template <class T>
nb::tuple least_squares(Place& place, const Compressed& a, const Array& b, const Wishes& wishes) {
  const auto view = a.view<T>();
  const auto right = matrix_of<T>(b, "b");
  Solution<T> out;
  SessionPtr session;
  {
    const Held held(place);
    session = held.session();
    out = sparse::least_squares<T>(held.context(), view, right, wishes.analyze(), wishes.factor());
  }
  return nb::make_tuple(to_array(place, session, std::move(out.x)), out.rank, out.full,
                        to_numpy(std::move(out.residual_norms)));
}

template <class T>
void bind_scalar(nb::module_& m, const char* name) {
  using Bound = SparseFactor<T>;
  nb::class_<Bound>(m, name)
      .def_prop_ro("shape", &Bound::shape)
      .def("rank", &Bound::rank)
      .def("permutation", &Bound::permutation)
      .def("r", &Bound::r)
      .def("apply", &Bound::apply)
      .def("solve", &Bound::solve)
      .def("refactor", &Bound::refactor)
      .def("facts", &Bound::facts);
}

}  // namespace

void bind_sparse(nb::module_& m) {
  bind_scalar<float>(m, "SparseFactorF32");
  bind_scalar<double>(m, "SparseFactorF64");
  nb::class_<Compressed>(m, "Compressed")
      .def("__init__",
           [](Compressed* self, Index rows, Index cols, bool by_columns, const Array& pointers, const Array& indices,
              const Array& values) { new (self) Compressed{rows, cols, by_columns, pointers, indices, values}; });
  nb::class_<Wishes>(m, "Wishes")
      .def("__init__", [](Wishes* self, const std::string& ordering, const std::string& processor, double tolerance,
                          bool detect_rank, bool refuse_deficient, bool keep_q, bool check_finite) {
        new (self) Wishes{ordering, processor, tolerance, detect_rank, refuse_deficient, keep_q, check_finite};
      });
  m.def(
      "sparse_factor",
      [](Place& place, const Compressed& a, const Wishes& wishes) {
        return by_scalar(a.values, [&](auto t) { return factor<decltype(t)>(place, a, wishes); });
      },
      nb::keep_alive<0, 1>());
  m.def("sparse_least_squares", [](Place& place, const Compressed& a, const Array& b, const Wishes& wishes) {
    return by_scalar(a.values, [&](auto t) { return least_squares<decltype(t)>(place, a, b, wishes); });
  });
}

}  // namespace qrane::python
