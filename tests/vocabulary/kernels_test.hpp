// SPDX-License-Identifier: Apache-2.0
// Tests of the vocabulary (src/vocabulary), operation by operation, on one backend in float and double.
#pragma once

#include "kernels_fixture.hpp"

#include "fronts/kernels_fronts_layout.hpp"
#include "fronts/kernels_fronts_panels.hpp"
#include "fronts/kernels_fronts_staging.hpp"
#include "fronts/kernels_fronts_tree.hpp"
#include "fronts/kernels_fronts_updates.hpp"
#include "kernels_batch.hpp"
#include "kernels_movement.hpp"
#include "kernels_panels.hpp"
#include "kernels_pivot.hpp"
#include "kernels_products.hpp"
#include "kernels_reflect.hpp"
#include "kernels_robust_pca.hpp"
#include "kernels_small.hpp"
#include "kernels_sweep.hpp"
#include "kernels_update.hpp"
