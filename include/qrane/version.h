/* SPDX-License-Identifier: Apache-2.0 */
/* The version of these headers, for C and C++. Semantic versioning, from 0.1.0. */
#ifndef QRANE_VERSION_H
#define QRANE_VERSION_H

#define QRANE_VERSION_MAJOR 0
#define QRANE_VERSION_MINOR 1
#define QRANE_VERSION_PATCH 0
#define QRANE_VERSION_STRING "0.1.0"

#endif
