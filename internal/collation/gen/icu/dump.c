// Prints the collation elements of ICU's root collator: for each code point "HEX CLASS; CE …", then for each
// contraction "HEX HEX …; CE …". main.go reads it.
#include <stdio.h>
#include <unicode/uchar.h>
#include <unicode/ucol.h>
#include <unicode/ucoleitr.h>
#include <unicode/uset.h>
#include <unicode/utf16.h>

static UCollator *root;

static void elements(const UChar *s, int32_t n) {
  UErrorCode e = U_ZERO_ERROR;
  UCollationElements *it = ucol_openElements(root, s, n, &e);
  int32_t ce;
  printf(";");
  while ((ce = ucol_next(it, &e)) != UCOL_NULLORDER) printf(" %08X", (unsigned)ce);
  printf("\n");
  ucol_closeElements(it);
}

int main(void) {
  UErrorCode e = U_ZERO_ERROR;
  root = ucol_open("root", &e);
  ucol_setAttribute(root, UCOL_NORMALIZATION_MODE, UCOL_ON, &e);
  ucol_setStrength(root, UCOL_TERTIARY);
  for (UChar32 c = 0; c <= 0x10FFFF; c++) {
    if (U_IS_SURROGATE(c) || (c >= 0xAC00 && c <= 0xD7A3)) continue; // syllables are decomposed
    UChar s[2];
    int32_t n = 0;
    U16_APPEND_UNSAFE(s, n, c);
    printf("%X %d", (unsigned)c, u_getCombiningClass(c));
    elements(s, n);
  }
  printf("#\n");
  USet *contractions = uset_openEmpty();
  ucol_getContractionsAndExpansions(root, contractions, NULL, 0, &e);
  for (int32_t i = 0, count = uset_getItemCount(contractions); i < count; i++) {
    UChar32 from, to;
    UChar s[32];
    int32_t n = uset_getItem(contractions, i, &from, &to, s, 32, &e);
    if (n < 2) continue;
    for (int32_t at = 0; at < n;) {
      UChar32 c;
      U16_NEXT(s, at, n, c);
      printf(at > 1 && !(at == 2 && c > 0xFFFF) ? " %X" : "%X", (unsigned)c);
    }
    elements(s, n);
  }
  return U_FAILURE(e);
}
