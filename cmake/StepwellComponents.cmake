# SPDX-License-Identifier: Apache-2.0

# stepwell_component_option(OPTION TEXT PACKAGE VERSION): declares the option of a component that needs PACKAGE, VERSION or newer. Its values
# are ON, OFF and AUTO: the component is built if the package is found. The default is AUTO, or OFF in a project that uses this one. Sets the
# variable OPTION to ON or OFF.
function(stepwell_component_option option text package version)
  set(default OFF)
  if(PROJECT_IS_TOP_LEVEL)
    set(default AUTO)
  endif()
  set(${option} ${default} CACHE STRING "${text} (ON, OFF, or AUTO: if ${package} ${version} or newer is found)")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${option} STREQUAL AUTO)
    return()
  endif()
  find_package(${package} QUIET NO_MODULE)
  if(NOT ${package}_FOUND)
    set(found "${package} was not found")
  elseif(${package}_VERSION VERSION_LESS version)
    set(found "${package} ${${package}_VERSION} is too old")
  else()
    message(STATUS "${option}: ON (${package} ${${package}_VERSION})")
    set(${option} ON PARENT_SCOPE)
    return()
  endif()
  message(STATUS "${option}: OFF (${found}; it needs ${version} or newer)")
  set(${option} OFF PARENT_SCOPE)
endfunction()
