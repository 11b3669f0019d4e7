// SPDX-License-Identifier: Apache-2.0
//
// The scripts of the page share one scope, so tsc checks their names. Those of the tests are modules for node.
import js from '@eslint/js';

const node = Object.fromEntries(
  ['Buffer', 'URL', 'URLSearchParams', 'clearTimeout', 'console', 'fetch', 'process', 'setInterval', 'clearInterval', 'setTimeout'].map(
    (name) => [name, 'readonly'],
  ),
);

export default [
  { ignores: ['**/uplot/*.js'] },
  js.configs.recommended,
  {
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-var': 'error',
      'prefer-const': 'error',
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-restricted-properties': [
        'error',
        ...['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'srcdoc'].map((property) => ({ property, message: 'Insert text as text.' })),
        { object: 'document', property: 'write', message: 'Insert text as text.' },
      ],
    },
  },
  {
    files: ['src/stepwell/board/page/*.js'],
    languageOptions: { sourceType: 'script' },
    rules: { 'no-undef': 'off', 'no-unused-vars': ['error', { vars: 'local' }], strict: ['error', 'global'] },
  },
  { files: ['tests/board/**/*.mjs'], languageOptions: { globals: node } },
];
