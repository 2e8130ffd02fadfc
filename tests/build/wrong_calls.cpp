// SPDX-License-Identifier: Apache-2.0
// Calls that must not compile, one for each CASE; the compiler's message says what to do (wrong_calls_tests.cmake).
#include <complex>
#include <vector>

#include <qrane/qrane.hpp>

void wrong(const qrane::Context& context, const std::vector<double>& constant) {
#if CASE == 1  // a scalar that is not there
  const std::vector<std::complex<double>> a(4);
  qrane::qr(context, a);
#elif CASE == 2
  const std::vector<int> a(4);
  qrane::svd(context, a);
#elif CASE == 3
  qrane::Matrix<long double>::host(2, 2);
#elif CASE == 4  // a result into constant memory
  qrane::qr(context, constant).apply_qt(constant);
#endif
}
