/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C interface: a plane z = c0 + c1 x + c2 y through 200 points that lie on it, by QR and least squares in float.
 * Exit status 1 when the coefficients are not those of the plane.
 */
#include <math.h>
#include <qrane/qrane.h>
#include <stdio.h>

enum { POINTS = 200, UNKNOWNS = 3 };

int main(void) {
  static float values[POINTS * UNKNOWNS], heights[POINTS];
  float plane[UNKNOWNS] = {0, 0, 0};
  const float truth[UNKNOWNS] = {2.0f, -0.5f, 0.25f};
  qrane_context* context = NULL;
  qrane_qr* qr = NULL;
  qrane_device_info device = QRANE_DEVICE_INFO_INIT;
  qrane_solution solution = QRANE_SOLUTION_INIT;
  qrane_matrix_s a, b, x;
  int i, status = 0;

  for (i = 0; i < POINTS; ++i) {
    const float across = (float)(i % 20), along = (float)(i / 20); /* a grid of 20 x 10 */
    values[i] = 1.0f;
    values[i + POINTS] = across;
    values[i + 2 * POINTS] = along;
    heights[i] = truth[0] + truth[1] * across + truth[2] * along;
  }
  a = qrane_host_s(values, POINTS, UNKNOWNS, POINTS);
  b = qrane_host_s(heights, POINTS, 1, POINTS);
  x = qrane_host_s(plane, UNKNOWNS, 1, UNKNOWNS);

  if (qrane_context_create(NULL, &context) || qrane_context_info(context, &device) ||
      qrane_factor_s(context, &a, NULL, &qr) || qrane_solve_s(qr, &b, NULL, &x, &solution)) {
    fprintf(stderr, "c_solve: %s\n", qrane_last_error());
    status = 1;
  } else {
    printf("qrane %s on %s\n", qrane_version(), device.name);
    printf("z = %.4f + %.4f x + %.4f y, rank %d of %d\n", plane[0], plane[1], plane[2], (int)solution.rank,
           (int)solution.full);
    for (i = 0; i < UNKNOWNS; ++i) {
      if (!(fabs(plane[i] - truth[i]) < 1e-4)) status = 1;
    }
  }
  qrane_qr_destroy(qr);
  qrane_context_destroy(context);
  return status;
}
