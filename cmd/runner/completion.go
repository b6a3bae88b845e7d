package main

import (
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

func scopeNames(s *schema.Schema) []string {
	var names []string
	for _, scope := range s.APIKeys.Scopes {
		names = append(names, scope.Name)
	}
	return names
}

func roleNames(s *schema.Schema) []string { return s.Auth.Roles }
