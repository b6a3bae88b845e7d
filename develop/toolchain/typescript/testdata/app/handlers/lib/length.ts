/** How long a text is. */
export function lengthOf(text: string): number {
  // the place of a failure is on the next line
  return text.length;
}
