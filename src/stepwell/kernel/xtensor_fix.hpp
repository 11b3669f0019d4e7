// SPDX-License-Identifier: Apache-2.0
//
// Include this before any xtensor header.
//
// xtensor before 0.26 tells its dynamic-rank temporaries which container to become by specialising two traits, but only
// when compiled as C++17 to the letter. In C++20 the general rule takes a shape of unknown rank for a fixed rank of four:
// `xt::eval`, immediate reducers, `pad` and `norm` then read a shape that is not there. The specialisations are said
// here for the two shapes xtensor uses; they must be full ones, as a partial one is ambiguous with xtensor's own.
// From 0.26 on, whose headers have moved, nothing is needed and nothing is done.
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
