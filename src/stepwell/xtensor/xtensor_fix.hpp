// SPDX-License-Identifier: Apache-2.0
//
// Workaround for versions of xtensor before 0.26 that are compiled as C++20. Include this header before any header of xtensor.
//
// xtensor stores temporary results in containers. Two traits select the type of such a container. For shapes whose rank is known only at
// run time, xtensor has partial specialisations of both traits. These specialisations take effect only if xtensor is compiled as C++17. If
// it is compiled as C++20, the compiler uses the primary templates, which treat a shape of dynamic rank as a shape of fixed rank four. The
// following functions then read dimensions that the shape does not have: `xt::eval`, `pad`, `norm`, and reducers with the option
// `xt::evaluation_strategy::immediate`. This header specialises both traits for the two shape types that xtensor uses. The specialisations
// are full specialisations, because partial specialisations would be ambiguous with those of xtensor. xtensor 0.26 and later need no
// workaround. These versions have the header `xtensor/containers/xtensor.hpp`; if it exists, this header is empty.
#pragma once

#if __has_include(<xtensor/xtensor_forward.hpp>) && !__has_include(<xtensor/containers/xtensor.hpp>)

#include <xtensor/xtensor_forward.hpp>

#include <cstddef>
#include <memory>

namespace xt {

namespace stepwell_fix {
using unsigned_shape = svector<std::size_t, 4, std::allocator<std::size_t>, true>;
using signed_shape = svector<std::ptrdiff_t, 4, std::allocator<std::ptrdiff_t>, true>;
}  // namespace stepwell_fix

template<class Element, class Container>
struct rebind_container;
template<>
struct rebind_container<std::ptrdiff_t, stepwell_fix::unsigned_shape> {
  using type = stepwell_fix::signed_shape;
};
template<>
struct rebind_container<std::size_t, stepwell_fix::unsigned_shape> {
  using type = stepwell_fix::unsigned_shape;
};

namespace detail {
template<class Shape>
struct xtype_for_shape;
template<>
struct xtype_for_shape<stepwell_fix::unsigned_shape> {
  template<class Element, layout_type Layout>
  using type = xarray<Element, Layout>;
};
template<>
struct xtype_for_shape<stepwell_fix::signed_shape> {
  template<class Element, layout_type Layout>
  using type = xarray<Element, Layout>;
};
}  // namespace detail

}  // namespace xt

#endif
