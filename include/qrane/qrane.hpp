// SPDX-License-Identifier: Apache-2.0
// All of qrane.
#pragma once

#include <qrane/context.hpp>
#include <qrane/error.hpp>
#include <qrane/interrupt.hpp>
#include <qrane/least_squares.hpp>
#include <qrane/matrix.hpp>
#include <qrane/pivoted_qr.hpp>
#include <qrane/qr.hpp>
#include <qrane/robust_pca.hpp>
#include <qrane/solution.hpp>
#include <qrane/sparse_qr.hpp>
#include <qrane/svd.hpp>
#include <qrane/updatable_qr.hpp>
#include <qrane/update.hpp>
#include <qrane/version.hpp>
