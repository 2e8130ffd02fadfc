// SPDX-License-Identifier: Apache-2.0
// The cases of one precision that update a factorization: what they share, and what each kind measures.
#pragma once

#include <map>
#include <optional>
#include <tuple>

#include "paper/updates/updates.hpp"
#include "suites/updated_matrix.hpp"

namespace qrane::bench {

/// Whether Q is there as a matrix.
inline bool has_q(QForm form) { return form == QForm::thin || form == QForm::full; }

/// A factorization, who changes it, and how its work is timed.
template <class T>
struct UpdateSubject {
  UpdateWay way;
  QR<T>& f;
  paper::Updates<T>* paper;  ///< null for the product

  UpdateReport forward(const UpdatedMatrix<T>& matrix) const {
    if (paper == nullptr) return matrix.forward(f);
    *paper->method = way == UpdateWay::paper ? paper::Method::paper : paper::Method::paper_dense;
    try {
      const UpdateReport report = matrix.forward(f);
      paper->method->reset();  // it goes back as the product does
      return report;
    } catch (...) {
      paper->method->reset();
      throw;
    }
  }
};

template <class T>
class UpdateCases {
 public:
  UpdateCases(Session& session, const std::string& precision);
  void run(const UpdateShape& update, const std::function<void(const UpdateCase&)>& report);
  /// Gives back the memory of the matrix and factorization that cases share.
  void forget();

 private:
  /// Longest that one peer may take for one case beside a GPU: there are hundreds of cases.
  static constexpr double peer_seconds = 0.15;

  struct PeerReply {
    std::vector<double> samples_ms;
    std::vector<double> form_q_ms;  ///< to be added where Q is asked for
    std::string reason;
  };
  struct Refactored {
    std::string algorithm;
    std::vector<double> samples_ms;
  };

  /// What the paper's protocol moves to the device, of the matrix and form that cases share.
  struct Transfers {
    std::vector<Matrix<T>> host, device;
    std::vector<double> samples_ms;
  };

  UpdateCase new_case(const UpdateShape& update);
  /// The seeded matrix that the update changes, factored, with one right-hand side attached (R alone loses that when
  /// columns come in: none there); kept for the cases that follow.
  QR<T>& factored(const UpdateShape& update);
  /// That, or the same for the paper's methods.
  UpdateSubject<T> subject(const UpdateShape& update, UpdateWay way);
  /// The same made again.
  QR<T> fresh(QForm form, bool attached);
  paper::Updates<T> fresh_paper(QForm form, bool attached);
  /// f as it was after `factored`: without the rounding of updates there and back.
  void refresh(QR<T>& f);
  /// The way back; R alone may refuse it, and is made anew then.
  void take_back(const UpdateSubject<T>& subject, const UpdatedMatrix<T>& matrix);
  double time_ms(const UpdateSubject<T>& subject, const std::function<void()>& work) const;

  // update_cases.cpp
  void time(const UpdateShape& update, UpdateCase& result);
  UpdateTime time_way(const UpdateShape& update, const UpdateSubject<T>& subject, const UpdatedMatrix<T>& matrix,
                      UpdateCase& result);
  void time_by_turns(const UpdateShape& update, const UpdatedMatrix<T>& matrix, UpdateCase& result);
  std::vector<UpdateStage> time_stages(const UpdateSubject<T>& subject, const UpdatedMatrix<T>& matrix);
  ErrorMeasures check(const UpdateShape& update, const QR<T>& f, MatrixView<const T> after);
  const Refactored& refactored(Shape after, QForm form, MatrixView<const T> a);
  void add_peers(const UpdateShape& update, UpdateCase& result);
  PeerTime ask(const std::string& peer, const PeerTask& task, bool with_q);
  static double factor_flops(Shape shape);
  void note(const UpdateShape& update, const std::string& what) const;

  // update_protocol.cpp
  void time_protocol(const UpdateShape& update, const UpdatedMatrix<T>& matrix, UpdateCase& result);
  const std::vector<double>& whole_solutions(const UpdatedMatrix<T>& matrix);

  // update_accuracy.cpp
  void measure_accuracy(const UpdateShape& update, UpdateCase& result);

  // update_batch.cpp
  void time_batch(const UpdateShape& update, UpdateCase& result);

  // update_window.cpp
  void time_window(const UpdateShape& update, UpdateCase& result);

  Session& session_;
  std::string precision_;
  Shape shape_;
  QForm form_ = QForm::thin;
  bool attached_ = false;
  Matrix<T> a_, b_;
  std::optional<QR<T>> f_;
  std::optional<paper::Updates<T>> paper_;  ///< of the same matrix and form
  Transfers transfers_;
  std::map<std::tuple<Index, Index, int>, Refactored> refactored_;
  std::map<std::pair<Index, Index>, std::vector<double>> whole_solutions_;
  std::map<std::string, PeerReply> asked_;
};

}  // namespace qrane::bench
