// SPDX-License-Identifier: Apache-2.0
// What the tuner asks of a device: what plan a table leads to, how long it takes, whether its result is right.
#pragma once

#include <memory>
#include <string>

#include <qrane/qr.hpp>

#include "tuning/table.hpp"

namespace qrane::tuning {

/// One factorization: a shape, what is kept of Q, and the algorithm by name.
struct Case {
  Index rows = 0, cols = 0;
  QForm q = QForm::none;
  Algorithm algorithm = Algorithm::automatic;
};

/// "100000 x 192 none caqr".
std::string to_string(const Case& c);

struct Timing {
  double ms = 0;  ///< median; on a CPU, which other programs use too, the fastest
  double spread =
      0;  ///< relative: half the distance between the quartiles; on a CPU that of the lower one to the fastest
};

class Trials {
 public:
  virtual ~Trials() = default;
  virtual int scalar_bytes() const = 0;
  /// Elements of the largest matrix there is room and patience for.
  virtual Index most_elements() const = 0;
  /// Without the bytes that it takes; asks nothing of the device.
  virtual Plan plan(const Case& c, const std::shared_ptr<const Tables>& tables) = 0;
  /// Stops early once a run takes more than twice `give_up_ms`.
  virtual Timing time(const Case& c, const std::shared_ptr<const Tables>& tables, double give_up_ms) = 0;
  /// Decision 9's measures on some columns of a matrix as wide as the case's (rows are left out), relative to their
  /// limit: a result is right up to 1. R alone is judged by columns of RᵀR.
  virtual double error(const Case& c, const std::shared_ptr<const Tables>& tables) = 0;
};

/// `scalar_bytes`: 4 or 8. The context's tables are changed by every trial.
std::unique_ptr<Trials> make_trials(const Context& context, int scalar_bytes);

}  // namespace qrane::tuning
