package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"runner.example/internal/diag"
	"runner.example/schema"
)

// CompleteFlag completes the values of a flag.
func CompleteFlag(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic("BUG: " + err.Error())
	}
}

// SchemaNames completes names that the app's schema declares. A schema with errors has
// none.
func (c *CLI) SchemaNames(of func(*schema.Schema) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		a, err := c.ReadApp(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.Unset = func([]diag.Source, diag.List) {}
		s, _, err := a.Compile()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of(s), cobra.ShellCompDirectiveNoFileComp
	}
}

// FirstArg completes the first argument by first, and those after it by rest.
func FirstArg(first, rest cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return first(cmd, args, word)
		}
		return rest(cmd, args, word)
	}
}

// AnyFile completes names of files.
func AnyFile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// EntityNames returns the names of the entities.
func EntityNames(s *schema.Schema) []string {
	var names []string
	for _, e := range s.Entities {
		names = append(names, e.Name)
	}
	return names
}

// HandlerNames returns those of routes and functions.
func HandlerNames(s *schema.Schema) []string {
	names := append(FunctionNames(s), s.HandlersOfRoutes()...)
	slices.Sort(names)
	return slices.Compact(names)
}

// ScopeNames returns the names of the scopes of API keys.
func ScopeNames(s *schema.Schema) []string {
	var names []string
	for _, scope := range s.APIKeys.Scopes {
		names = append(names, scope.Name)
	}
	return names
}

// RoleNames returns the roles.
func RoleNames(s *schema.Schema) []string { return s.Auth.Roles }

// FunctionNames returns the names of the functions.
func FunctionNames(s *schema.Schema) []string {
	var names []string
	for i := range s.Functions {
		names = append(names, s.Functions[i].Name)
	}
	return names
}
