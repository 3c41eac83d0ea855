// The scripts of the pages are put one after another into one <script> (output/page/write.py): what one declares, the others see.
// That all names exist is checked by tsc, which knows all of them.
import globals from "globals";

const rules = {
  "constructor-super": "error",
  "eqeqeq": ["error", "always"],
  "for-direction": "error",
  "no-cond-assign": "error",
  "no-const-assign": "error",
  "no-dupe-args": "error",
  "no-dupe-else-if": "error",
  "no-dupe-keys": "error",
  "no-duplicate-case": "error",
  "no-eval": "error",
  "no-fallthrough": "error",
  "no-implied-eval": "error",
  "no-loss-of-precision": "error",
  "no-redeclare": ["error", { builtinGlobals: false }],
  "no-restricted-properties": ["error", ...["innerHTML", "outerHTML", "insertAdjacentHTML"].map(property => ({ property, message: "names from files are set as text" }))],
  "no-self-assign": "error",
  "no-self-compare": "error",
  "no-shadow-restricted-names": "error",
  "no-sparse-arrays": "error",
  "no-unreachable": "error",
  "no-unsafe-finally": "error",
  "no-unsafe-optional-chaining": "error",
  "no-unused-vars": ["error", { vars: "local" }],
  "no-var": "error",
  "prefer-const": ["error", { destructuring: "all" }],
  "use-isnan": "error",
  "valid-typeof": "error",
};

export default [
  { files: ["**/output/**/*.js"], languageOptions: { sourceType: "script", ecmaVersion: 2022, globals: globals.browser }, rules },
  { files: ["**/scripts/*.js"], languageOptions: { sourceType: "module", ecmaVersion: 2023, globals: globals.node }, rules: { ...rules, "no-undef": "error" } },
];
