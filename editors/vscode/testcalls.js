"use strict";

/**
 * The tests of a file: the offsets of the calls of test(name, …), and the names. A name that is computed is left out.
 *
 * @param {string} text
 */
exports.testsOf = (text) => {
  const calls = /^[ \t]*test(?:\.(?:only|skip))?\(\s*(["'`])((?:\\.|(?!\1)[^\\\n])*)\1\s*,/gm;
  return [...text.matchAll(calls)]
    .filter(([, quote, name]) => quote !== "`" || !name.includes("${"))
    .map((call) => ({ at: call.index + call[0].search(/\S/), name: call[2].replace(/\\(.)/g, "$1") }));
};
