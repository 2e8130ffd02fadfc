/* SPDX-License-Identifier: Apache-2.0 */
/* QRANE_API marks what a shared library exports; everything else is hidden. For C and C++. */
#ifndef QRANE_EXPORT_H
#define QRANE_EXPORT_H

#if defined(__cplusplus) && __cplusplus >= 201103L && defined(__GNUC__)
#define QRANE_API [[gnu::visibility("default")]]
#elif defined(__GNUC__)
#define QRANE_API __attribute__((visibility("default")))
#else
#define QRANE_API
#endif

#endif
