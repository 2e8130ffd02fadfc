// SPDX-License-Identifier: Apache-2.0
// A planned factorization as a CUDA graph: refactor, r_into, q_into and apply_qt of device matrices on the caller's
// stream are captured, as are plans of SVD and least squares, so nothing in them waits, asks the host or allocates;
// replays factor what then lies in A, give the bits of a direct call, and hand over to the Householder tree by
// themselves where the data ask for it.
#include <cuda_runtime_api.h>

#include <qrane/qrane.hpp>

#include "support/backends.hpp"
#include "support/combos.hpp"
#include "support/every_nth.hpp"
#include "support/measures.hpp"

namespace qrane::test {
namespace {

void check(cudaError_t status, const char* call) {
  ASSERT_EQ(status, cudaSuccess) << call << ": " << cudaGetErrorString(status);
}

/// A stream of the caller's with qrane's context on it.
class Stream {
 public:
  Stream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    ContextOptions options;
    options.backend = Backend::cuda;
    options.stream = stream_;
    context_ = std::make_unique<Context>(options);
  }
  ~Stream() {
    context_.reset();
    (void)cudaStreamDestroy(stream_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  const Context& context() const { return *context_; }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Context> context_;
};

/// What `work` queues on the stream, as a graph; its nodes must be kernels, copies and fills alone.
class Graph {
 public:
  template <class Work>
  Graph(cudaStream_t stream, Work work) : stream_(stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    work();
    check(cudaStreamEndCapture(stream, &graph_), "cudaStreamEndCapture");
    if (graph_ == nullptr) return;
    std::size_t count = 0;
    check(cudaGraphGetNodes(graph_, nullptr, &count), "cudaGraphGetNodes");
    std::vector<cudaGraphNode_t> nodes(count);
    check(cudaGraphGetNodes(graph_, nodes.data(), &count), "cudaGraphGetNodes");
    EXPECT_GT(count, 0u);
    for (cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type{};
      check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
      EXPECT_TRUE(type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemset ||
                  type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeEmpty)
          << "a node of type " << type << " in the graph";
    }
    check(cudaGraphInstantiate(&ready_, graph_, 0), "cudaGraphInstantiate");
  }
  ~Graph() {
    if (ready_ != nullptr) (void)cudaGraphExecDestroy(ready_);
    if (graph_ != nullptr) (void)cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() {
    ASSERT_NE(ready_, nullptr);
    check(cudaGraphLaunch(ready_, stream_), "cudaGraphLaunch");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
};

template <class Where>
class QrCapture : public BackendTest<Where> {
 protected:
  using T = typename Where::Scalar;

  /// A well-conditioned matrix, and one that no Cholesky factorization survives.
  static std::vector<Dense<T>> inputs(Shape s) {
    return {random_normal<T>(s.rows, s.cols, 21), hostile::duplicate_columns<T>(s.rows, s.cols, 22)};
  }
};

using OnCuda = ::testing::Types<On<Backend::cuda, float>, On<Backend::cuda, double>>;
TYPED_TEST_SUITE(QrCapture, OnCuda, Names);

constexpr Shape shapes[] = {{1200, 32}, {700, 96}, {192, 192}, {40, 75}};

TYPED_TEST(QrCapture, ReplaysGiveTheBitsOfADirectCall) {
  using T = typename TypeParam::Scalar;
  Stream stream;
  const Context& context = stream.context();
  EveryNth cases(5);
  for (const Combo combo : all_combos())
    for (const Shape s : in_turn(shapes)) {
      if (!legal(combo, s) || cases.skip()) continue;
      SCOPED_TRACE(label("random normal", s, combo, {}));
      const Index k = std::min(s.rows, s.cols);
      const bool has_q = combo.q != QForm::none;
      const auto first = random_normal<T>(s.rows, s.cols, 20);
      Matrix<T> a = context.to_device<T>(std::as_const(first).view()), r = context.allocate<T>(k, s.cols);
      Matrix<T> q = context.allocate<T>(s.rows, k), c = context.allocate<T>(s.rows, 3);
      auto f = qr<T>(context, a, options_for(combo));
      Graph graph(stream.get(), [&] {
        f.refactor(std::as_const(a).view());
        f.r_into(r.view());
        if (has_q) f.q_into(q.view());
        if (keeps_reflectors(combo.q)) f.apply_qt(c.view());
      });
      const auto right = random_normal<T>(s.rows, 3, 23);
      for (const Dense<T>& input : this->inputs(s)) {
        context.copy<T>(input.view(), a.view());
        context.copy<T>(right.view(), c.view());
        graph.replay();
        auto direct = qr<T>(context, input.view(), options_for(combo));
        EXPECT_EQ(this->host_of(context, r).values, this->host_of(context, direct.r()).values);
        if (has_q) {
          const auto thin = this->host_of(context, q);
          EXPECT_EQ(thin.values, this->host_of(context, direct.q()).values);
          EXPECT_TRUE(is_qr_of(input, thin, this->host_of(context, r)));
        }
        if (keeps_reflectors(combo.q)) {
          auto expected = right;
          direct.apply_qt(expected.view());
          EXPECT_EQ(this->host_of(context, c).values, expected.values);
        }
      }
    }
}

/// What the factorization keeps of earlier calls is not for the caller's graph, and the other way round.
TYPED_TEST(QrCapture, AFactorizationThatHasBeenRepeatedIsCapturedAsAnyOther) {
  using T = typename TypeParam::Scalar;
  Stream stream;
  const Context& context = stream.context();
  EveryNth cases(8);
  for (const Combo combo : all_combos())
    for (const Shape s : in_turn(shapes)) {
      if (!legal(combo, s) || cases.skip()) continue;
      SCOPED_TRACE(label("repeated", s, combo, {}));
      const auto first = random_normal<T>(s.rows, s.cols, 20);
      Matrix<T> a = context.to_device<T>(std::as_const(first).view());
      auto f = qr<T>(context, a, options_for(combo));
      for (int run = 0; run < 4; ++run) f.refactor(std::as_const(a).view());
      Graph graph(stream.get(), [&] { f.refactor(std::as_const(a).view()); });
      for (const Dense<T>& input : this->inputs(s)) {
        const auto expected = this->host_of(context, qr<T>(context, input.view(), options_for(combo)).r()).values;
        context.copy<T>(input.view(), a.view());
        graph.replay();
        EXPECT_EQ(this->host_of(context, f.r()).values, expected);
        context.copy<T>(first.view(), a.view());
        f.refactor(std::as_const(a).view());
        context.copy<T>(input.view(), a.view());
        f.refactor(std::as_const(a).view());
        EXPECT_EQ(this->host_of(context, f.r()).values, expected);
      }
    }
}

/// Plans of SVD and least squares: a replay has the bits of an execution, and the stable way takes over by itself.
TYPED_TEST(QrCapture, PlansOfSvdAndLeastSquares) {
  using T = typename TypeParam::Scalar;
  Stream stream;
  const Context& context = stream.context();
  for (const Shape s : {Shape{1200, 32}, Shape{700, 96}, Shape{32, 1200}}) {
    SCOPED_TRACE(to_string(s));
    const Index k = std::min(s.rows, s.cols);
    const auto first = random_normal<T>(s.rows, s.cols, 20), right = random_normal<T>(s.rows, 2, 23);
    Matrix<T> a = context.to_device<T>(first.view()), b = context.to_device<T>(right.view());
    Matrix<T> x = context.allocate<T>(s.cols, 2), values = context.allocate<T>(k, 1);
    Matrix<T> u = context.allocate<T>(s.rows, k), vt = context.allocate<T>(k, s.cols);
    SvdPlan<T> decompose(context, s.rows, s.cols);
    LeastSquaresPlan<T> solve(context, s.rows, s.cols, 2);
    const auto execute = [&] {
      decompose.execute(a, values, u, vt);
      solve.execute(a, b, x);
    };
    const auto results = [&] {
      decompose.finish();
      (void)solve.finish();
      std::vector<T> all;
      for (const Matrix<T>* part : {&values, &u, &vt, &x}) {
        const auto host = this->host_of(context, *part).values;
        all.insert(all.end(), host.begin(), host.end());
      }
      return all;
    };
    execute();  // takes the memory
    Graph graph(stream.get(), execute);
    for (const Dense<T>& input : {random_normal<T>(s.rows, s.cols, 21), geometric_spectrum<T>(s.rows, s.cols, 1e6, 3),
                                  hostile::duplicate_columns<T>(s.rows, s.cols, 22)}) {
      context.copy<T>(input.view(), a.view());
      execute();
      const auto direct = results();
      context.copy<T>(first.view(), a.view());
      execute();  // other results, which the replay must replace
      context.copy<T>(input.view(), a.view());
      graph.replay();
      EXPECT_EQ(results(), direct);
    }
  }
}

}  // namespace
}  // namespace qrane::test
