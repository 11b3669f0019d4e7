// SPDX-License-Identifier: Apache-2.0
export default { printWidth: 140, singleQuote: true };
