# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPREFIX=directory ... -P user_project.cmake
# Builds an independent program with the installation below PREFIX. A run that is stopped, killed and restarted must end
# like an undisturbed run: at the step where its own hook stops it, with the same numbers in that hook and the same bits
# in the model.
set(PROJECT user_project)
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

# factorise(EXIT_CODE OUTPUT ARGUMENT...): runs the program once and sets OUTPUT to its output.
function(factorise exit_code output)
  execute_process(COMMAND ${WORK}/build/factorise ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE ended OUTPUT_VARIABLE printed)
  message("factorise ${ARGN}: ended with ${ended}\n${printed}")
  if(NOT ended EQUAL exit_code)
    message(FATAL_ERROR "factorise ${ARGN} ended with ${ended}, not with ${exit_code}")
  endif()
  set(${output} "${printed}" PARENT_SCOPE)
endfunction()

# expect(STRING PATTERN WHY)
function(expect string pattern why)
  if(NOT string MATCHES "${pattern}")
    message(FATAL_ERROR "${why}: no '${pattern}' in\n${string}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} -S ${project} -B ${WORK}/build ${common} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${PREFIX})
run(${CMAKE_COMMAND} --build ${WORK}/build)

factorise(0 whole undisturbed)
expect("${whole}" "^from step=0\nend " "the undisturbed run began with something")
expect("${whole}" "no better for a while" "its hook did not stop it")

factorise(0 stopped disturbed 1000)
expect("${stopped}" "final step=1000 " "not stopped after 1000 steps")
factorise(9 killed disturbed 1000000 1700)
factorise(0 resumed disturbed)
expect("${resumed}" "^from step=1[05]00\n" "the run did not go on from a checkpoint of the one that was killed")
factorise(0 again disturbed)
expect("${again}" "^from step=[0-9]*\nend " "the finished run could not be started again")

string(REGEX REPLACE "^from step=[0-9]*\n" "" undisturbed "${whole}")
foreach(run IN ITEMS resumed again)
  string(REGEX REPLACE "^from step=[0-9]*\n" "" disturbed "${${run}}")
  if(NOT disturbed STREQUAL undisturbed)
    message(FATAL_ERROR "the run that was disturbed ended otherwise:\n${disturbed}\nand not as\n${undisturbed}")
  endif()
endforeach()
