package main

import (
	"slices"

	"github.com/spf13/cobra"

	"runner.example/schema"
)

// completeFlag completes the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic("BUG: " + err.Error())
	}
}

// schemaNames completes names that the app's schema declares. A schema with errors has
// none.
func (c *cli) schemaNames(of func(*schema.Schema) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		a, err := c.readApp(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s, _, err := a.Compile()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of(s), cobra.ShellCompDirectiveNoFileComp
	}
}

// firstArg completes the first argument by first, and those after it by rest.
func firstArg(first, rest cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return first(cmd, args, word)
		}
		return rest(cmd, args, word)
	}
}

// anyFile completes names of files.
func anyFile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

func entityNames(s *schema.Schema) []string {
	var names []string
	for _, e := range s.Entities {
		names = append(names, e.Name)
	}
	return names
}

// handlerNames are those of routes and functions.
func handlerNames(s *schema.Schema) []string {
	names := functionNames(s)
	for i := range s.Routes {
		names = append(names, s.Routes[i].Handler)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func scopeNames(s *schema.Schema) []string {
	var names []string
	for _, scope := range s.APIKeys.Scopes {
		names = append(names, scope.Name)
	}
	return names
}

func roleNames(s *schema.Schema) []string { return s.Auth.Roles }
