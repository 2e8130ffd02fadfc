// SPDX-License-Identifier: Apache-2.0
// What `qrane bench` measures, and its entry point. benchmarks/README.md explains every number it reports.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <qrane/context.hpp>
#include <qrane/qr.hpp>

#include "sparse_problems.hpp"

namespace qrane::bench {

struct Shape {
  Index rows = 0;
  Index cols = 0;
};

/// What the matrices of a suite's factorizations are (common/seeded_matrix.hpp).
enum class MatrixKind {
  uniform,          ///< well conditioned
  ill_conditioned,  ///< condition number 1 / u, u the unit roundoff
};

/// Where the matrices of robust PCA come from.
enum class Frames {
  video,      ///< data/vtest_384x288_100.mp4; left out, with the reason, where it cannot be read
  synthetic,  ///< made here: rank 5 and 5% sparse (common/seeded_matrix.hpp)
};

/// A public call other than the factorization itself.
struct OperationShape {
  std::string operation;  ///< "svd" (U, S and V^T), "gels" (least squares) or "batched" (BatchQR)
  Shape shape;
  Index rhs = 0;               ///< gels: right-hand sides
  Index count = 1;             ///< batched: matrices
  QForm mode = QForm::lapack;  ///< batched: what is asked for
};

/// What is looked at of an update.
enum class UpdateKind {
  time,      ///< how long one takes, and against factoring the updated matrix
  accuracy,  ///< orthogonality, backward and forward error as Andrew and Dingle's tables 3 to 5 define them
  window,    ///< rows in at one end and out at the other, one after the other, queued
  batch,     ///< of many matrices in one call, against BatchQR::refactor
};

/// Who makes an update: the product by its own choice, or a method of Andrew and Dingle (paper/updates/updates.hpp).
enum class UpdateWay { automatic, paper, paper_dense };
const char* to_string(UpdateWay way);

/// An update of a factorization: a point of a figure or a row of a table of Andrew and Dingle (2014), or of the goals.
struct UpdateShape {
  std::string figure;  ///< "figure 6", "table 1", "goal", ...
  UpdateKind kind = UpdateKind::time;
  Change change = Change::insert_rows;
  Shape shape;  ///< before the update
  Index k = 0, p = 0;
  QForm form = QForm::thin;
  Index count = 1;  ///< batch: matrices
  std::vector<UpdateWay> ways = {UpdateWay::automatic};  ///< the first is the one that is compared
  int block_cols = 0;
  bool stages = false;          ///< the times of its parts (table 2)
  bool paper_protocol = false;  ///< once more with transfers and the solution
  std::string precision = "";   ///< where only one is wanted
};

/// A named list of cases: every shape in every mode, in each precision asked for.
struct SuiteInfo {
  std::string name;
  std::string summary;                ///< one line for `qrane bench --list`
  std::vector<Shape> shapes = {};     ///< factorizations
  std::vector<QForm> modes = {};      ///< none is "R only"
  std::vector<Algorithm> named = {};  ///< beside `automatic` in every mode that they have
  MatrixKind matrix = MatrixKind::uniform;
  std::vector<Shape> grid = {};  ///< sizes at which every algorithm runs by name, R alone
  std::vector<OperationShape> operations = {};
  std::vector<UpdateShape> updates = {};
  std::vector<SparseProblem> (*sparse)(const std::string& folder) = nullptr;  ///< sparse matrices
  bool uses = false;                   ///< what factors of those are used for, and in how little memory
  bool tiles = false;                  ///< those by the sparse paper's rounds of tile tasks alone, on CUDA devices
  bool inner_kernels = false;          ///< the layouts of the paper's inner kernel, on CUDA devices
  std::vector<Shape> background = {};  ///< robust PCA problems
  Frames frames = Frames::video;       ///< of those
  bool pipelines = false;              ///< of those by the CAQR paper's pipeline, with CAQR and with BLAS2 QR
  std::string precision = "";          ///< where only one is wanted unless another is asked for
  bool torch = false;                  ///< PyTorch as a peer, on an NVIDIA GPU where it is found
  bool rivals = false;                 ///< the CAQR paper's rivals as peers, on an NVIDIA GPU
  bool host_peers = true;              ///< LAPACK on the host beside a GPU
  double gpu_seconds = 60;             ///< on a GPU no case begins after this time
  bool hidden = false;                 ///< run by name, not listed: for the tests
};

/// The grid of `paper-updates` and that of its small likeness for the tests (update_suites.cpp).
std::vector<UpdateShape> paper_updates();
std::vector<UpdateShape> smoke_updates();

/// All suites, hidden ones included.
std::vector<SuiteInfo> suites();

struct BenchOptions {
  std::string suite;
  std::string json_file;  ///< empty: no JSON
  Backend backend = Backend::automatic;
  int device = 0;
  std::string precision;      ///< "f32", "f64", or empty for both
  bool quiet = false;         ///< no table and no progress; the JSON file alone
  std::string cli_directory;  ///< where the qrane executable lies: the peer programs are looked for there
  std::string matrices;       ///< folder of sparse matrices (.mtx, .mtx.gz); empty: generated ones alone
  double max_seconds = 0;     ///< longest estimated single run; cases above it are left out with a printed
                              ///< reason. 0: 2 s where the device is a CPU, no limit on a GPU
  double suite_seconds = 0;   ///< no case begins after this time; 0: the suite's own on a GPU, no limit on a CPU
  std::function<bool()> interrupted;  ///< asked between runs; true stops, and what was measured is still written
};

/// Runs a suite: table on standard output, progress on standard error, JSON to the file. Returns the exit status:
/// 0, or 1 when a result missed the error limit or the run was interrupted. Throws Error for an unknown suite or
/// precision, an absent device, or an unwritable file.
int run(const BenchOptions& options);

}  // namespace qrane::bench
