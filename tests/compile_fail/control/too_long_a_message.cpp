// expect: not_declared
// SPDX-License-Identifier: Apache-2.0
// at most: 10 bytes
int main() { return not_declared; }
