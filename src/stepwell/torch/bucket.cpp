// SPDX-License-Identifier: Apache-2.0
#include "stepwell/torch/bucket.hpp"

#include "stepwell/base/error.hpp"
#include "stepwell/torch/torch.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace stepwell::libtorch {

namespace {

bool sum_on_gpu(group& all, at::Tensor& values) {
  if (!values.is_cuda()) { return false; }
  const auto type = tensor_adapter<at::Tensor>::on_device(values)->description().dtype;
  return all.sum_on_gpu(type, {static_cast<std::byte*>(values.data_ptr()), values.nbytes()});
}

}  // namespace

bucket::bucket(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
  std::erase_if(parameters_, [](const at::Tensor& one) { return one.defined() && !one.requires_grad(); });
  std::vector<at::ScalarType> types;
  std::map<at::ScalarType, std::int64_t> counts;
  for (const auto& one : parameters_) {
    if (!one.defined() || one.layout() != at::kStrided || one.is_meta() || !at::isFloatingType(one.scalar_type()) ||
        one.device() != parameters_[0].device()) {
      throw invalid_argument_error(
          "bucket: a parameter is undefined, sparse, on another device than the first one, or not of a floating-point type; sum its gradient "
          "in another way");
    }
    if (std::ranges::count_if(parameters_, [&](const at::Tensor& other) { return other.is_same(one); }) > 1) {
      throw invalid_argument_error("bucket: a parameter occurs twice; list tied parameters once");
    }
    if (!counts.contains(one.scalar_type())) { types.push_back(one.scalar_type()); }
    counts[one.scalar_type()] += one.numel();
  }
  std::map<at::ScalarType, at::Tensor> flat_of;
  for (const auto type : types) {
    flat_.push_back(at::zeros({counts[type]}, parameters_[0].options().dtype(type).requires_grad(false)));
    flat_of[type] = flat_.back();
  }
  std::map<at::ScalarType, std::int64_t> used;
  for (const auto& one : parameters_) {
    auto& begin = used[one.scalar_type()];
    views_.push_back(flat_of[one.scalar_type()].narrow(0, begin, one.numel()).view(one.sizes()));
    begin += one.numel();
  }
  zero();
}

void bucket::zero() {
  for (auto& one : flat_) { one.zero_(); }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().is_same(views_[i])) { parameters_[i].mutable_grad() = views_[i]; }
  }
}

void bucket::sum(group& all) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& gradient = parameters_[i].grad();
    if (!gradient.defined() || gradient.data_ptr() != views_[i].data_ptr() || gradient.strides() != views_[i].strides()) {
      throw failed_precondition_error("bucket: the gradient of parameter " + std::to_string(i) +
                                      " is no view of the bucket any more; call "
                                      "bucket.zero() in place of optimizer.zero_grad()");
    }
  }
  for (auto& one : flat_) {
    if (one.is_cpu()) {
      all.sum(one);
    } else if (!sum_on_gpu(all, one)) {
      auto on_host = one.cpu();
      all.sum(on_host);
      one.copy_(on_host);
    }
  }
}

}  // namespace stepwell::libtorch
