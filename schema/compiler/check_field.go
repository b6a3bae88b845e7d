package compiler

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"runner.example/schema"
	"runner.example/schema/model"
	"runner.example/schema/report"
	"runner.example/schema/syntax"
)

// fieldChecker checks the fields of entities and types, and the parameters of functions.
type fieldChecker struct{ *app }

// typeName checks the name of an entity, an enum or a type.
func (c *fieldChecker) typeName(word string, name syntax.Ident) {
	switch first, _ := firstRune(name.Name); {
	case name.Name == "":
	case slices.Contains(schema.BuiltinTypes, name.Name):
		c.Errorf("E201", name.Loc, "%q is a reserved name", name.Name)
	case !unicode.IsUpper(first):
		c.errorIfTyped("202", name.Loc, "%s names begin with a capital letter: %q", word, name.Name)
	}
}

func firstRune(s string) (rune, bool) {
	for _, r := range s {
		return r, true
	}
	return 0, false
}

// reservedFields have a meaning of their own at the start of a name in a rule.
var reservedFields = []string{"auth", "old", "new", "outer", "now", "null", "true", "false", "not", "exists"}

// checkFields checks the fields of an entity or a type, or the parameters of a function.
func (c *fieldChecker) checkFields(owner string, fields []*syntax.FieldDecl) {
	taken := seenNames{}
	for _, f := range fields {
		if first, twice := taken.add(f.Name); twice {
			c.Errorf("E211", f.Name.Loc, "field %q is already declared in %s at %s",
				f.Name.Name, owner, report.At(f.Name.Loc, first))
		}
		switch first, named := firstRune(f.Name.Name); {
		case !named:
		case slices.Contains(reservedFields, f.Name.Name):
			c.Errorf("E201", f.Name.Loc, "%q is a reserved name", f.Name.Name)
		case !unicode.IsLower(first):
			c.errorIfTyped("202", f.Name.Loc, "field names begin with a lower-case letter: %q", f.Name.Name)
		}
		if f.Type == nil {
			continue
		}
		c.checkType(f.Type)
		c.checkBounds(f)
		c.checkDefault(f)
	}
}

// checkType checks that a type exists and that its arguments are valid.
func (c *fieldChecker) checkType(t *syntax.TypeRef) {
	name := t.Name.Name
	switch {
	case name == "":
	case slices.Contains(schema.BuiltinTypes, name):
		c.checkTypeArgs(t)
	case c.named[name] == nil:
		c.Missing(name, "E212", t.Name.Loc, "unknown type %q%s", name, c.Hint(types, name, c.typeNames()))
	case t.Args != nil:
		c.Errorf("E213", t.Args.Loc, "%s takes no arguments", name)
	}
}

// refuseFiles refuses fields of type file in a type, or among parameters: clients do not send files in JSON, but as the
// body of a request with `upload: on`.
func (c *fieldChecker) refuseFiles(fields []*syntax.FieldDecl) {
	for _, f := range fields {
		if f.Type != nil {
			c.refuseFile(f.Type)
		}
	}
}

func (c *fieldChecker) refuseFile(t *syntax.TypeRef) {
	if t.Name.Name == "file" {
		c.Errorf("E249", t.Loc,
			"file is only allowed in entities: requests send files to a route with `upload: on`, and results have them in rows")
	}
}

// checkTypeArgs checks arguments as in string(1..32) and decimal(12,2).
func (c *fieldChecker) checkTypeArgs(t *syntax.TypeRef) {
	name, args := t.Name.Name, t.Args
	refuse := func(format string, a ...any) {
		span := t.Name.Loc
		if args != nil {
			span = args.Loc
		}
		c.Errorf("E213", span, format, a...)
	}
	if name == "file" {
		c.checkFileType(t)
		return
	}
	if args != nil && args.First == nil {
		return // reported
	}
	switch name {
	case "decimal":
		if args == nil || args.Range || args.Second == nil || args.First.Int < 1 || args.First.Int > schema.MaxDigits ||
			args.Second.Int < 0 || args.Second.Int > args.First.Int {
			refuse("decimal needs (digits, places) with places ≤ digits ≤ %d", schema.MaxDigits)
		}
	case "string", "text", "int", "float":
		switch {
		case args == nil:
		case args.First.Int < 0 && (name == "string" || name == "text"):
			refuse("%s(%s): a length cannot be negative", name, args.First.Raw)
		case args.Second == nil && (name == "int" || name == "float"), args.Second != nil && !args.Range:
			refuse("write the bounds of %s as (1..100)", name)
		case args.Second != nil && args.First.Int > args.Second.Int:
			refuse("%s(%s..%s): the lower bound is above the upper bound", name, args.First.Raw, args.Second.Raw)
		}
	default:
		if args != nil {
			refuse("%s takes no arguments", name)
		}
	}
}

// mediaType is the form of a media type without parameters; the subtype may be *.
var mediaType = regexp.MustCompile(`^[a-z0-9][a-z0-9!#$&^_.+-]*/(\*|[a-z0-9][a-z0-9!#$&^_.+-]*)$`)

// checkFileType checks a type as file(10mb, "image/png").
func (c *fieldChecker) checkFileType(t *syntax.TypeRef) {
	if t.List {
		c.Errorf("E213", t.Loc, "a field has one file: for several, declare an entity with a file and a relation to this one")
	}
	if t.Args == nil {
		return
	}
	if size := t.Args.First; size != nil && (size.Int < 1 || size.Int > schema.MaxSafeInteger) {
		c.Errorf("E213", size.Loc, "the limit of a file is at least 1b, and below 8192tb")
	}
	for _, media := range t.Args.Media {
		if !mediaType.MatchString(strings.ToLower(media.Text)) {
			c.Errorf("E213", media.Loc, "%s is not a media type: write one such as \"image/png\" or \"image/*\"", media.Raw)
		}
	}
}

// checkBounds checks @min, @max and @pattern against the field's type.
func (c *fieldChecker) checkBounds(f *syntax.FieldDecl) {
	for _, attr := range f.Attrs {
		if attr.Arg == nil {
			continue
		}
		switch name := attr.Name.Name; name {
		case "min", "max":
			if !f.Type.List && slices.Contains([]string{"int", "float", "decimal", "duration", "time", "date"},
				f.Type.Name.Name) {
				if why := mismatch(f.Type, attr.Arg); why != "" {
					c.Errorf("E213", attr.Loc, "@%s(%s) %s", name, attr.Arg.Raw, why)
				}
			} else if c.typeExists(f) {
				c.Errorf("E213", attr.Loc, "@%s needs a number, a duration or a time, not %s", name, describeType(f.Type))
			}
		case "pattern":
			c.checkPattern(f, attr)
		}
	}
	low, high := f.Attr("min"), f.Attr("max")
	if low == nil || high == nil || low.Arg == nil || high.Arg == nil {
		return
	}
	if order, ok := valueOf(f.Type, low.Arg).Compare(valueOf(f.Type, high.Arg)); ok && order > 0 {
		c.Errorf("E213", high.Loc, "@min(%s) @max(%s): the lower bound is above the upper bound", low.Arg.Raw, high.Arg.Raw)
	}
}

// textTypes are the types of free text.
var textTypes = []string{"string", "text", "email", "url"}

func (c *fieldChecker) checkPattern(f *syntax.FieldDecl, attr *syntax.FieldAttr) {
	if c.typeExists(f) && !slices.Contains(textTypes, f.Type.Name.Name) {
		c.Errorf("E218", attr.Loc, "@pattern needs a text field, not %s", describeType(f.Type))
		return
	}
	if _, err := regexp.Compile(attr.Arg.Text); err != nil {
		why := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		c.Errorf("E218", attr.Loc, "the pattern does not compile: %s (RE2)", why)
		return
	}
	c.checkPatternBounds(f, attr)
}

// checkPatternBounds checks the cost of matching the pattern.
func (c *fieldChecker) checkPatternBounds(f *syntax.FieldDecl, attr *syntax.FieldAttr) {
	program := schema.PatternProgram(attr.Arg.Text)
	if program > schema.MaxPatternProgram {
		c.Errorf("E248", attr.Loc, "the pattern compiles to %d instructions; the limit is %d: use smaller repetitions",
			program, schema.MaxPatternProgram)
		return
	}
	if !c.typeExists(f) || f.Type.Args != nil && f.Type.Args.First == nil {
		return // reported
	}
	t := schema.Type{Kind: schema.BuiltinKind(f.Type.Name.Name)}
	model.SetBounds(&t, f.Type.Args)
	switch longest := t.LongestText(); {
	case longest == 0 && !t.HasMaxLen:
		name := f.Type.Name.Name
		c.Errorf("E247", attr.Loc,
			"@pattern needs a text of limited length: write %s(1000), with the length that you need", name)
	case longest > schema.MaxPatternSteps/program:
		c.Errorf("E248", attr.Loc,
			"the pattern compiles to %d instructions; for texts of %d characters the limit is %d: limit the length, or use smaller repetitions",
			program, longest, schema.MaxPatternSteps/longest)
	}
}

// checkDefault checks that the default is a value of the field.
func (c *fieldChecker) checkDefault(f *syntax.FieldDecl) {
	if f.Default == nil || !c.typeExists(f) {
		return
	}
	refuse := func(format string, a ...any) { c.Errorf("E214", f.Default.Span(), format, a...) }
	switch d := c.named[f.Type.Name.Name].(type) {
	case *syntax.EntityDecl:
		refuse("a relation cannot have a default")
		return
	case *syntax.TypeDecl:
		refuse("a value of type %s cannot have a default", d.Name.Name)
		return
	}
	list, isList := f.Default.(*syntax.ListSetting)
	switch {
	case f.Type.Name.Name == "id", f.Type.Name.Name == "file":
		refuse("%s cannot have a default", article(f.Type.Name.Name))
		return
	case f.Type.List && !isList:
		refuse("the default of a list is a list: write [] or its elements in brackets")
		return
	case f.Type.List:
		c.checkListDefault(f, list)
		return
	case isList:
		refuse("the default is a list, and the field is not")
		return
	}
	if enum, ok := c.named[f.Type.Name.Name].(*syntax.EnumDecl); ok {
		c.checkEnumDefault(enum, f.Default)
		return
	}
	switch v := f.Default.(type) {
	case *syntax.NameSetting:
		if v.Name.Name != "now" || f.Type.Name.Name != "time" && f.Type.Name.Name != "date" {
			refuse("the default %s is not %s", v.Name.Name, article(f.Type.Name.Name))
		}
	case *syntax.Literal:
		why := mismatch(f.Type, v)
		if why == "" {
			why = violatedBound(f, v)
		}
		if why != "" {
			refuse("the default %s %s", v.Raw, why)
		}
	}
}

// checkListDefault checks each element as the default of a field that is not a list.
func (c *fieldChecker) checkListDefault(f *syntax.FieldDecl, list *syntax.ListSetting) {
	elem, elemType := *f, *f.Type
	elemType.List = false
	elem.Type = &elemType
	for _, elem.Default = range list.Elems {
		if name, ok := elem.Default.(*syntax.NameSetting); ok && name.Name.Name == "now" {
			c.Errorf("E214", name.Loc, "now cannot be an element of a default")
			continue
		}
		c.checkDefault(&elem)
	}
}

func (c *fieldChecker) checkEnumDefault(enum *syntax.EnumDecl, v syntax.SettingValue) {
	switch v := v.(type) {
	case *syntax.NameSetting:
		if values := model.Names(enum.Values); !slices.Contains(values, v.Name.Name) {
			c.Missing(v.Name.Name, "E215", v.Loc, "%q is not a value of enum %s%s",
				v.Name.Name, enum.Name.Name, c.DidYouMean(v.Name.Name, values))
		}
	case *syntax.Literal:
		c.Errorf("E215", v.Loc, "%s is not a value of enum %s: a default is the value's name, without quotes",
			v.Raw, enum.Name.Name)
	}
}

// valueOf is the value of a literal. A string is converted to a time, a date or a decimal if
// t is that type.
func valueOf(t *syntax.TypeRef, lit *syntax.Literal) schema.Value {
	v := model.Value(lit)
	if lit.Kind != syntax.StringLit {
		return v
	}
	switch scalar := (&schema.Type{Kind: schema.BuiltinKind(t.Name.Name)}); scalar.Kind {
	case schema.Time, schema.Date, schema.Decimal:
		v, _ = scalar.ParseOperand(v.AppendPlain(nil))
	}
	return v
}

// violatedBound says which @min, @max or @pattern a literal violates; "" if none.
func violatedBound(f *syntax.FieldDecl, lit *syntax.Literal) string {
	for _, attr := range f.Attrs {
		if attr.Arg == nil {
			continue
		}
		order, ok := valueOf(f.Type, lit).Compare(valueOf(f.Type, attr.Arg))
		switch {
		case attr.Name.Name == "min" && ok && order < 0:
			return fmt.Sprintf("is below @min(%s)", attr.Arg.Raw)
		case attr.Name.Name == "max" && ok && order > 0:
			return fmt.Sprintf("is above @max(%s)", attr.Arg.Raw)
		case attr.Name.Name == "pattern" && lit.Kind == syntax.StringLit:
			if re, err := regexp.Compile(attr.Arg.Text); err == nil && !re.MatchString(lit.Text) {
				return "does not match @pattern"
			}
		}
	}
	return ""
}

// mismatch says why a literal is not a value of a built-in type: "is not an int", "is outside
// 1..100". It returns "" if the literal is a value of the type.
func mismatch(t *syntax.TypeRef, lit *syntax.Literal) string {
	name := t.Name.Name
	ok := true
	switch name {
	case "int":
		if lit.Kind == syntax.IntLit {
			return mismatchRange(t, lit)
		}
		ok = false
	case "float":
		if lit.Kind == syntax.IntLit || lit.Kind == syntax.DecimalLit {
			return mismatchRange(t, lit)
		}
		ok = false
	case "decimal":
		return mismatchDecimal(t, lit)
	case "bool":
		ok = lit.Kind == syntax.BoolLit
	case "duration":
		if lit.Kind == syntax.DurationLit && lit.Duration%time.Second != 0 {
			return "is not in whole seconds"
		}
		if lit.Kind != syntax.DurationLit {
			return "is not a duration" + lit.DurationHint("s")
		}
	case "json":
	case "string", "text":
		if lit.Kind == syntax.StringLit {
			return mismatchLength(t, lit)
		}
		ok = false
	default:
		ok = lit.Kind == syntax.StringLit && hasForm(name, lit.Text)
	}
	if !ok {
		return "is not " + article(name)
	}
	return ""
}

// hasForm reports whether text is a value of a built-in type that is written as a string.
func hasForm(scalar, text string) bool {
	_, err := (&schema.Type{Kind: schema.BuiltinKind(scalar)}).ParseText(text)
	return err == nil
}

func mismatchRange(t *syntax.TypeRef, lit *syntax.Literal) string {
	if t.Args == nil || t.Args.First == nil || t.Args.Second == nil {
		if lit.Kind == syntax.IntLit && (lit.Int > schema.MaxSafeInteger || lit.Int < -schema.MaxSafeInteger) {
			return "is beyond 2^53"
		}
		return ""
	}
	value := model.Value(lit)
	below, _ := value.Compare(schema.IntValue(t.Args.First.Int))
	above, _ := value.Compare(schema.IntValue(t.Args.Second.Int))
	if below < 0 || above > 0 {
		return fmt.Sprintf("is outside %s..%s", t.Args.First.Raw, t.Args.Second.Raw)
	}
	return ""
}

func mismatchLength(t *syntax.TypeRef, lit *syntax.Literal) string {
	if t.Args == nil || t.Args.First == nil {
		return ""
	}
	low, high := int64(0), t.Args.First.Int
	if t.Args.Second != nil {
		low, high = t.Args.First.Int, t.Args.Second.Int
	}
	if n := int64(utf8.RuneCountInString(lit.Text)); n < low || n > high {
		return fmt.Sprintf("has %d characters, outside %d..%d", n, low, high)
	}
	return ""
}

func mismatchDecimal(t *syntax.TypeRef, lit *syntax.Literal) string {
	text := lit.Text
	switch lit.Kind {
	case syntax.IntLit:
		text = fmt.Sprint(lit.Int)
	case syntax.DecimalLit, syntax.StringLit:
	default:
		return "is not a decimal"
	}
	if !decimalForm.MatchString(text) {
		return "is not a decimal"
	}
	if t.Args == nil || t.Args.First == nil || t.Args.Second == nil {
		return ""
	}
	whole, places, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	whole = strings.TrimLeft(whole, "0")
	if int64(len(places)) > t.Args.Second.Int || int64(len(whole)) > t.Args.First.Int-t.Args.Second.Int {
		return fmt.Sprintf("does not fit decimal(%d,%d)", t.Args.First.Int, t.Args.Second.Int)
	}
	return ""
}

var decimalForm = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// article prepends "a" or "an" to the name of a type.
func article(name string) string {
	if name == "json" || name == "bytes" {
		return name
	}
	if strings.ContainsAny(name[:1], "aeioAEIO") {
		return "an " + name
	}
	return "a " + name
}
