// SPDX-License-Identifier: Apache-2.0
// All pages of the vocabulary that dense algorithms use; fronts.hpp and front_solve.hpp are for sparse ones.
#pragma once

#include "vocabulary/batch.hpp"
#include "vocabulary/guard.hpp"
#include "vocabulary/movement.hpp"
#include "vocabulary/panels.hpp"
#include "vocabulary/products.hpp"
#include "vocabulary/queue.hpp"
#include "vocabulary/rpca.hpp"
#include "vocabulary/small.hpp"
#include "vocabulary/updates.hpp"
