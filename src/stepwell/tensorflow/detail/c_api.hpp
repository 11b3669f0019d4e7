// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow's C API: our own declarations of its types and functions, which are looked up in the library at run time. Nothing of
// TensorFlow is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepwell::tensorflow::detail::c {

// Objects of the library, used by pointer only.
struct status;
struct tensor;
struct graph;
struct operation;
struct operation_description;
struct session;
struct session_options;
struct import_options;
struct server;

/// Bytes with a function that frees them.
struct buffer {
  const void* data;
  std::size_t length;
  void (*free)(void* data, std::size_t length);
};
/// Output number `index` of an operation.
struct output {
  operation* oper;
  int index;

  friend bool operator==(const output&, const output&) = default;
};
/// An element of a tensor of strings.
struct alignas(8) string {
  unsigned char bytes[24];
};

using code = int;
using data_type = int;
using deallocator = void (*)(void* data, std::size_t length, void* argument);

/// Calls `STEPWELL_TF(member, name, result, parameters)` for each function that the adapter uses. The functions of each step come first, so
/// that their pointers are in one cache line or two.
#define STEPWELL_TF_FUNCTIONS(STEPWELL_TF)                                                                                              \
  STEPWELL_TF(session_run, TF_SessionRun, void,                                                                                         \
              (session*, const buffer*, const output*, tensor* const*, int, const output*, tensor**, int, const operation* const*, int, \
               buffer*, status*))                                                                                                       \
  STEPWELL_TF(get_code, TF_GetCode, code, (const status*))                                                                              \
  STEPWELL_TF(tensor_data, TF_TensorData, void*, (const tensor*))                                                                       \
  STEPWELL_TF(delete_tensor, TF_DeleteTensor, void, (tensor*))                                                                          \
  STEPWELL_TF(num_dims, TF_NumDims, int, (const tensor*))                                                                               \
  STEPWELL_TF(tensor_byte_size, TF_TensorByteSize, std::size_t, (const tensor*))                                                        \
  STEPWELL_TF(version, TF_Version, const char*, ())                                                                                     \
  STEPWELL_TF(new_status, TF_NewStatus, status*, ())                                                                                    \
  STEPWELL_TF(delete_status, TF_DeleteStatus, void, (status*))                                                                          \
  STEPWELL_TF(message, TF_Message, const char*, (const status*))                                                                        \
  STEPWELL_TF(new_buffer, TF_NewBuffer, buffer*, ())                                                                                    \
  STEPWELL_TF(delete_buffer, TF_DeleteBuffer, void, (buffer*))                                                                          \
  STEPWELL_TF(get_all_op_list, TF_GetAllOpList, buffer*, ())                                                                            \
  STEPWELL_TF(allocate_tensor, TF_AllocateTensor, tensor*, (data_type, const std::int64_t*, int, std::size_t))                          \
  STEPWELL_TF(tensor_type, TF_TensorType, data_type, (const tensor*))                                                                   \
  STEPWELL_TF(dim, TF_Dim, std::int64_t, (const tensor*, int))                                                                          \
  STEPWELL_TF(string_init, TF_StringInit, void, (string*))                                                                              \
  STEPWELL_TF(string_copy, TF_StringCopy, void, (string*, const char*, std::size_t))                                                    \
  STEPWELL_TF(string_data, TF_StringGetDataPointer, const char*, (const string*))                                                       \
  STEPWELL_TF(string_size, TF_StringGetSize, std::size_t, (const string*))                                                              \
  STEPWELL_TF(new_graph, TF_NewGraph, graph*, ())                                                                                       \
  STEPWELL_TF(delete_graph, TF_DeleteGraph, void, (graph*))                                                                             \
  STEPWELL_TF(new_import_options, TF_NewImportGraphDefOptions, import_options*, ())                                                     \
  STEPWELL_TF(delete_import_options, TF_DeleteImportGraphDefOptions, void, (import_options*))                                           \
  STEPWELL_TF(import_graph_def, TF_GraphImportGraphDef, void, (graph*, const buffer*, const import_options*, status*))                  \
  STEPWELL_TF(graph_to_graph_def, TF_GraphToGraphDef, void, (graph*, buffer*, status*))                                                 \
  STEPWELL_TF(operation_by_name, TF_GraphOperationByName, operation*, (graph*, const char*))                                            \
  STEPWELL_TF(next_operation, TF_GraphNextOperation, operation*, (graph*, std::size_t*))                                                \
  STEPWELL_TF(tensor_num_dims, TF_GraphGetTensorNumDims, int, (graph*, output, status*))                                                \
  STEPWELL_TF(tensor_shape, TF_GraphGetTensorShape, void, (graph*, output, std::int64_t*, int, status*))                                \
  STEPWELL_TF(operation_name, TF_OperationName, const char*, (operation*))                                                              \
  STEPWELL_TF(operation_type, TF_OperationOpType, const char*, (operation*))                                                            \
  STEPWELL_TF(operation_device, TF_OperationDevice, const char*, (operation*))                                                          \
  STEPWELL_TF(num_outputs, TF_OperationNumOutputs, int, (operation*))                                                                   \
  STEPWELL_TF(output_type, TF_OperationOutputType, data_type, (output))                                                                 \
  STEPWELL_TF(num_inputs, TF_OperationNumInputs, int, (operation*))                                                                     \
  STEPWELL_TF(operation_input, TF_OperationInput, output, (output))                                                                     \
  STEPWELL_TF(num_control_inputs, TF_OperationNumControlInputs, int, (operation*))                                                      \
  STEPWELL_TF(control_inputs, TF_OperationGetControlInputs, int, (operation*, operation**, int))                                        \
  STEPWELL_TF(attr_type, TF_OperationGetAttrType, void, (operation*, const char*, data_type*, status*))                                 \
  STEPWELL_TF(attr_tensor, TF_OperationGetAttrTensor, void, (operation*, const char*, tensor**, status*))                               \
  STEPWELL_TF(new_operation, TF_NewOperation, operation_description*, (graph*, const char*, const char*))                               \
  STEPWELL_TF(set_device, TF_SetDevice, void, (operation_description*, const char*))                                                    \
  STEPWELL_TF(add_input, TF_AddInput, void, (operation_description*, output))                                                           \
  STEPWELL_TF(add_control_input, TF_AddControlInput, void, (operation_description*, operation*))                                        \
  STEPWELL_TF(set_attr_type, TF_SetAttrType, void, (operation_description*, const char*, data_type))                                    \
  STEPWELL_TF(add_input_list, TF_AddInputList, void, (operation_description*, const output*, int))                                      \
  STEPWELL_TF(set_attr_bool, TF_SetAttrBool, void, (operation_description*, const char*, unsigned char))                                \
  STEPWELL_TF(set_attr_int, TF_SetAttrInt, void, (operation_description*, const char*, std::int64_t))                                   \
  STEPWELL_TF(set_attr_float, TF_SetAttrFloat, void, (operation_description*, const char*, float))                                      \
  STEPWELL_TF(set_attr_string, TF_SetAttrString, void, (operation_description*, const char*, const void*, std::size_t))                 \
  STEPWELL_TF(set_attr_shape, TF_SetAttrShape, void, (operation_description*, const char*, const std::int64_t*, int))                   \
  STEPWELL_TF(set_attr_tensor, TF_SetAttrTensor, void, (operation_description*, const char*, tensor*, status*))                         \
  STEPWELL_TF(add_gradients, TF_AddGradients, void, (graph*, output*, int, output*, int, output*, status*, output*))                    \
  STEPWELL_TF(finish_operation, TF_FinishOperation, operation*, (operation_description*, status*))                                      \
  STEPWELL_TF(new_session_options, TF_NewSessionOptions, session_options*, ())                                                          \
  STEPWELL_TF(delete_session_options, TF_DeleteSessionOptions, void, (session_options*))                                                \
  STEPWELL_TF(set_target, TF_SetTarget, void, (session_options*, const char*))                                                          \
  STEPWELL_TF(set_config, TF_SetConfig, void, (session_options*, const void*, std::size_t, status*))                                    \
  STEPWELL_TF(new_session, TF_NewSession, session*, (graph*, const session_options*, status*))                                          \
  STEPWELL_TF(close_session, TF_CloseSession, void, (session*, status*))                                                                \
  STEPWELL_TF(delete_session, TF_DeleteSession, void, (session*, status*))                                                              \
  STEPWELL_TF(new_server, TF_NewServer, server*, (const void*, std::size_t, status*))                                                   \
  STEPWELL_TF(server_start, TF_ServerStart, void, (server*, status*))                                                                   \
  STEPWELL_TF(server_target, TF_ServerTarget, const char*, (server*))                                                                   \
  STEPWELL_TF(delete_server, TF_DeleteServer, void, (server*))

/// The functions of a loaded library.
struct api {
#define STEPWELL_TF(member, name, result, parameters) \
  result(*member) parameters;  // NOLINT(bugprone-macro-parentheses): parts of a declaration
  STEPWELL_TF_FUNCTIONS(STEPWELL_TF)
#undef STEPWELL_TF
};

}  // namespace stepwell::tensorflow::detail::c
