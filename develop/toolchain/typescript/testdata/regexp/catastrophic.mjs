// Expressions that were reported to take exponential or quadratic time, and a text of about n characters
// for each, which does not match, or only at its end.

/** Name, expression, text. */
export const catastrophic = {
  "nested": [/^(a+)+$/, (n) => "a".repeat(n) + "b"],
  "equal alternatives": [/(a|a)*b/, (n) => "a".repeat(n)],
  "overlapping alternatives": [/^(a|aa)+$/, (n) => "a".repeat(n) + "b"],
  "nested, may be empty": [/^(?:(?:a*)*b?)*c/, (n) => "a".repeat(n) + "d"],
  "counted group": [/^(.*a){11}$/, (n) => "a".repeat(n) + "b"],
  "OWASP e-mail": [/^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$/, (n) => "a".repeat(n) + "!"],
  "OWASP Java class": [/^(([a-z])+.)+[A-Z]([a-z])+$/, (n) => "a".repeat(n) + "!"],
  "Stack Overflow 2016": [/^[\s\u200c]+|[\s\u200c]+$/g, (n) => "x" + " ".repeat(n) + "x"],
  "Cloudflare 2019": [/(?:(?:"|'|\]|\}|\\|\d|(?:nan|infinity|true|false|null|undefined|symbol|math)|`|\-|\+)+[)]*;?((?:\s|-|~|!|{}|\|\||\+)*.*(?:.*=.*)))/, (n) => "1x" + "x".repeat(n)],
  "moment, time spans": [/^(\-)?(?:(\d*)[. ])?(\d+)\:(\d+)(?:\:(\d+)\.?(\d{3})?\d*)?$/, (n) => "-" + "1".repeat(n)],
  "marked, brackets": [/^(?:[^\[\]\\]|\\.|\[(?:[^\[\]\\]|\\.)*\])*\]/, (n) => "[".repeat(3) + "\\a".repeat(n / 2)],
  "ansi-regex CVE-2021-3807": [/[\u001B\u009B][[\]()#;?]*(?:(?:(?:[a-zA-Z\d]*(?:;[-a-zA-Z\d\/#&.:=?%@~_]*)*)?\u0007)|(?:(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-ntqry=><~]))/g, (n) => "\u001b[" + ";".repeat(n)],
  "ua-parser-js CVE-2022-25927": [/\bdroid.+; ([^;]+?)(?: bui|\) applew).+(?:mobile)/i, (n) => "droid; " + "a ".repeat(n / 2)],
  "color-string CVE-2021-29060": [/^hwb\(\s*([+-]?\d*[\.]?\d+)(?:deg)?\s*,\s*([+-]?[\d\.]+)%\s*,\s*([+-]?[\d\.]+)%\s*\)$/, (n) => "hwb(" + "1".repeat(n)],
  "trim-newlines": [/[\r\n]+$/, (n) => "\n".repeat(n) + "x"],
  "back reference": [/^(a+)+\1b$/, (n) => "a".repeat(n) + "c"],
  "in a lookahead": [/^(?=(a+)+$)/, (n) => "a".repeat(n) + "b"],
  "two counted groups": [/^((a{1,20}){1,20}){1,20}$/, (n) => "a".repeat(n) + "b"],
};
