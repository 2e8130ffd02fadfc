// SPDX-License-Identifier: Apache-2.0
// copy_lines, sum_lines, norm_lines (vocabulary/front_solve.hpp): a work-item per number; in norm_lines a group per
// part, whose work-items have columns.

KERNEL copy_lines(CONDITION, BUFFER(source), BUFFER(target), BUFFER(source_index), BUFFER(target_index),
                  BUFFER(exponents), const long source_line, const long source_step, const long target_line,
                  const long target_step, const long count, const int cols, const int sign, const int add) {
  const long e = get_global_id(0), k = e / cols, c = e % cols;
  if (!WANTED || k >= count) return;
  const long from = source_index_at >= 0 ? AT(const int, source_index)[k] : k;
  const long to = target_index_at >= 0 ? AT(const int, target_index)[k] : k;
  const int exponent = exponents_at >= 0 ? sign * AT(const int, exponents)[k] : 0;
  REAL value = AT(const REAL, source)[from * source_line + c * source_step];
  if (exponent != 0) value = ldexp(value, exponent);
  __global REAL* place = AT(REAL, target) + to * target_line + c * target_step;
  *place = add ? *place + value : value;
}

KERNEL sum_lines(CONDITION, BUFFER(out), BUFFER(in), BUFFER(x), BUFFER(values), BUFFER(list), BUFFER(in_index),
                 BUFFER(index), BUFFER(entry), BUFFER(begin), const long count, const int cols, const int sign,
                 const int skip) {
  const long e = get_global_id(0), k = e / cols, c = e % cols;
  if (!WANTED || k >= count) return;
  const long o = list_at >= 0 ? AT(const int, list)[k] : k, i = in_index_at >= 0 ? AT(const int, in_index)[o] : o;
  const long begin = AT(const long, begin)[o], end = AT(const long, begin)[o + 1];
  __global const REAL* values = AT(const REAL, values);
  __global const int* entry = AT(const int, entry);
  REAL sum = in_at >= 0 && i >= 0 ? AT(const REAL, in)[i * cols + c] : 0;
  for (long p = begin + skip; p < end; ++p) {
    const REAL value = values_at < 0 ? 1 : values[entry_at >= 0 ? entry[p] : p];
    sum += (REAL)sign * value * AT(const REAL, x)[(long)AT(const int, index)[p] * cols + c];
  }
  if (skip > 0) sum /= values_at < 0 ? (REAL)1 : values[entry_at >= 0 ? entry[begin] : begin];
  AT(REAL, out)[o * cols + c] = sum;
}

KERNEL norm_lines(CONDITION, BUFFER(lines), BUFFER(exponents), BUFFER(partials), const long count, const int cols,
                  const int sign, const int parts) {
  if (!WANTED) return;
  const long part = get_group_id(0), first = count * part / parts, last = count * (part + 1) / parts;
  __global const REAL* lines = AT(const REAL, lines);
  __global const int* exponents = AT(const int, exponents);
  for (int c = (int)get_local_id(0); c < cols; c += WG) {
    wide scale = 0, sum = 0;
    for (long k = first; k < last; ++k)
      scale = fmax(scale, fabs(ldexp((wide)lines[k * cols + c], exponents_at >= 0 ? sign * exponents[k] : 0)));
    if (!(scale > 0) || isinf(scale)) scale = 1;
    for (long k = first; k < last; ++k) {
      const wide x = ldexp((wide)lines[k * cols + c], exponents_at >= 0 ? sign * exponents[k] : 0) / scale;
      sum += x * x;
    }
    __global stored_wide* out = AT(stored_wide, partials) + 2 * (part * cols + c);
    out[0] = from_wide(scale);
    out[1] = from_wide(sum);
  }
}
