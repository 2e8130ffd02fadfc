// SPDX-License-Identifier: Apache-2.0
// The suites: shapes of Anderson, Ballard, Demmel, Keutzer, "Communication-Avoiding QR Decomposition for GPUs"
// (IPDPS 2011), table I, figure 9 and section VI, and narrower ones where only the memory's rate can limit.
#include "suites/suites.hpp"

#include <algorithm>

namespace qrane::bench {
namespace {

const std::vector<QForm> usual_modes = {QForm::none, QForm::thin, QForm::implicit};
const std::vector<QForm> all_modes = {QForm::none, QForm::thin, QForm::implicit, QForm::lapack};

/// The given heights by 16, 32, ... 8192 columns, none wider than high.
std::vector<Shape> grid_of(const std::vector<Index>& heights) {
  std::vector<Shape> shapes;
  for (const Index rows : heights)
    for (Index cols = 16; cols <= std::min<Index>(rows, 8192); cols *= 2) shapes.push_back({rows, cols});
  return shapes;
}

/// Batches of the sizes that users ask for and of those that cuBLAS was measured at; LAPACK-shaped, the small ones with
/// thin Q too.
std::vector<OperationShape> batches() {
  std::vector<OperationShape> list = {
      {"batched", {512, 512}, 0, 640}, {"batched", {1024, 1024}, 0, 60}, {"batched", {2048, 2048}, 0, 8}};
  for (const OperationShape& small : std::initializer_list<OperationShape>{{"batched", {64, 16}, 0, 100'000},
                                                                           {"batched", {32, 32}, 0, 100'000},
                                                                           {"batched", {128, 16}, 0, 50'000},
                                                                           {"batched", {256, 64}, 0, 4000},
                                                                           {"batched", {512, 128}, 0, 1000}}) {
    list.push_back(small);
    list.push_back(small);
    list.back().mode = QForm::thin;
  }
  return list;
}

}  // namespace

std::vector<SuiteInfo> suites() {
  return {
      {.name = "paper-table1",
       .summary = "tall matrices of 192 columns, 1,000 to 1,000,000 rows",
       .shapes = {{1000, 192}, {10'000, 192}, {50'000, 192}, {100'000, 192}, {500'000, 192}, {1'000'000, 192}},
       .modes = usual_modes,
       .named = {Algorithm::caqr},
       .gpu_seconds = 150},
      {.name = "paper-width",
       .summary = "8192 rows, 64 to 8192 columns: from tall and skinny to square",
       .shapes =
           {{8192, 64}, {8192, 128}, {8192, 256}, {8192, 512}, {8192, 1024}, {8192, 2048}, {8192, 4096}, {8192, 8192}},
       .modes = all_modes,
       .named = {Algorithm::caqr},
       .gpu_seconds = 150},
      {.name = "paper-speedup",
       .summary =
           "1,024 to 1,048,576 rows by 16 to 8192 columns: every algorithm by name, and where one overtakes another",
       .grid = grid_of({1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20}),
       .precision = "f32"},
      {.name = "paper-tuning",
       .summary = "the paper's inner kernel: its layouts over block shapes, and the tree's share",
       .inner_kernels = true,
       .precision = "f32"},
      {.name = "paper-blas2",
       .summary =
           "the paper's rivals: BLAS2 Householder QR on the GPU, and panels on the host beside updates on the GPU",
       .shapes = {{1000, 192},
                  {10'000, 192},
                  {100'000, 192},
                  {1'000'000, 192},
                  {110'592, 100},
                  {8192, 64},
                  {8192, 512},
                  {8192, 2048},
                  {8192, 8192}},
       .modes = {QForm::none, QForm::thin},
       .named = {Algorithm::caqr},
       .precision = "f32",
       .rivals = true,
       .host_peers = false,
       .gpu_seconds = 90},
      {.name = "paper-rpca",
       .summary = "robust PCA of the video: CAQR against BLAS2 QR in one pipeline, full SVDs, and qrane's own way",
       .background = {{110'592, 100}},
       .pipelines = true,
       .precision = "f32",
       .torch = true},
      {.name = "skinny",
       .summary = "very tall, 8 to 100 columns, the papers' video matrix among them",
       .shapes = {{110'592, 100}, {1'000'000, 32}, {1'000'000, 64}, {4'000'000, 16}, {10'000'000, 8}},
       .modes = usual_modes},
      {.name = "square",
       .summary = "2048 to 32768 rows and columns, LAPACK-shaped",
       .shapes = {{2048, 2048}, {4096, 4096}, {8192, 8192}, {16'384, 16'384}, {32'768, 32'768}},
       .modes = {QForm::lapack}},
      {.name = "ill-conditioned",
       .summary = "the tall and skinny shapes of the other suites at condition number 1 / unit roundoff",
       .shapes = {{1000, 192},
                  {10'000, 192},
                  {50'000, 192},
                  {100'000, 192},
                  {500'000, 192},
                  {1'000'000, 192},
                  {110'592, 100},
                  {1'000'000, 32},
                  {1'000'000, 64},
                  {4'000'000, 16},
                  {10'000'000, 8}},
       .modes = {QForm::none, QForm::thin},
       .matrix = MatrixKind::ill_conditioned,
       .host_peers = false},
      {.name = "svd",
       .summary = "thin singular value decompositions of tall matrices: U, S and V",
       .operations = {{"svd", {110'592, 100}}, {"svd", {1'000'000, 32}}, {"svd", {100'000, 192}}},
       .torch = true},
      {.name = "gels",
       .summary = "least squares, tall to nearly square",
       .operations = {{"gels", {110'592, 100}, 1},
                      {"gels", {1'000'000, 192}, 1},
                      {"gels", {4000, 2000}, 1},
                      {"gels", {8000, 4000}, 1},
                      {"gels", {16'000, 6000}, 1}},
       .torch = true},
      {.name = "batched",
       .summary = "batches of equal matrices, 32 x 32 to 2048 x 2048",
       .operations = batches(),
       .precision = "f32",
       .torch = true},
      {.name = "background",
       .summary = "robust PCA iterations per second on 100 frames of 384 x 288",
       .background = {{110'592, 100}}},
      {.name = "background-synthetic",
       .summary = "the same on a made-up matrix of that size: rank 5 and 5% sparse",
       .background = {{110'592, 100}},
       .frames = Frames::synthetic},
      {.name = "paper-updates",
       .summary = "insert and delete rows and columns of a factorization, compared with refactoring",
       .updates = paper_updates(),
       .gpu_seconds = 270},
      {.name = "paper-windows",
       .summary = "blocks of table 1 of the updating paper as matrices of their own: nb columns, nb + 200 rows",
       .shapes = {{210, 10}, {232, 32}, {250, 50}, {264, 64}, {300, 100}, {400, 200}, {700, 500}},
       .modes = {QForm::implicit},
       .named = {Algorithm::caqr, Algorithm::blocked}},
      {.name = "paper-sparse",
       .summary = "sparse QR: the matrices of --matrices and generated ones, against SuiteSparseQR",
       .sparse = paper_sparse,
       .gpu_seconds = 250},
      {.name = "sparse-uses",
       .summary =
           "sparse factors on the device that holds them: within memory limits, solves, products with Q, refinement",
       .sparse = used_sparse,
       .uses = true,
       .precision = "f64",
       .gpu_seconds = 100},
      {.name = "paper-tiles",
       .summary = "the sparse paper's rounds of tile tasks: rates of the tasks, pipelining on and off",
       .sparse = tiled_sparse,
       .tiles = true},
      {.name = "smoke",
       .summary = "a few small cases, for the tests",
       .shapes = {{300, 20}, {1000, 32}, {64, 64}, {400, 200}},
       .modes = all_modes,
       .named = {Algorithm::caqr},
       .grid = {{300, 20}, {300, 150}},
       .operations = {{"svd", {500, 20}}, {"gels", {500, 20}, 2}, {"batched", {40, 8}, 0, 50, QForm::thin}},
       .background = {{600, 20}},
       .frames = Frames::synthetic,
       .pipelines = true,
       .hidden = true},
      {.name = "smoke-updates",
       .summary = "a few small updates, for the tests",
       .updates = smoke_updates(),
       .hidden = true},
      {.name = "smoke-sparse",
       .summary = "a few small sparse matrices, for the tests",
       .sparse = smoke_sparse,
       .hidden = true},
      {.name = "smoke-sparse-uses",
       .summary = "a few small sparse matrices, for the tests",
       .sparse = smoke_used_sparse,
       .uses = true,
       .hidden = true},
      {.name = "smoke-ill-conditioned",
       .summary = "a small ill-conditioned case, for the tests",
       .shapes = {{2000, 24}},
       .modes = {QForm::none, QForm::thin},
       .matrix = MatrixKind::ill_conditioned,
       .hidden = true},
  };
}

}  // namespace qrane::bench
